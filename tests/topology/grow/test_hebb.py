"""Growth by Cannistraci-Hebb scores: on the kept graph, exact counts, filled up at random."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError
from gbnn.sampling import distinct_edges
from gbnn.topology import Site
from gbnn.topology.grow.hebb import cannistraci_hebb, hebb
from gbnn.topology.grow.hebb_search import strongest_links
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
patient = settings(deadline=None, max_examples=60)


def site_of(edges: Edges) -> Site:
    return Site("w", Weights(edges, np.ones(edges.nnz)))


@st.composite
def rewirings(draw: st.DrawFn) -> tuple[Site, Array, int]:
    """Draw a small layer, what it drops and how many edges it is to grow."""
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    places = shape[0] * shape[1]
    nnz = draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    edges, _ = Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)
    dropped = np.sort(rng.permutation(nnz)[: draw(st.integers(0, nnz))])
    return site_of(edges), dropped, draw(st.integers(0, places - nnz + dropped.size))


@patient
@given(rewirings(), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_grows_exactly_what_it_should(
    case: tuple[Site, Array, int], internal: bool, sampled: bool, seed: int
) -> None:
    site, dropped, count = case
    grow = cannistraci_hebb(internal=internal, sampled=sampled)
    sources, targets = grow(site, dropped, count, np.random.default_rng(seed))
    assert sources.dtype == targets.dtype == np.int64
    grown = set(zip(sources.tolist(), targets.tolist(), strict=True))
    assert len(grown) == count == sources.size
    kept = site.kept(dropped)
    assert not grown & set(zip(kept.sources.tolist(), kept.targets.tolist(), strict=True))
    scored = strongest_links(kept, kept.shape[0] * kept.shape[1], internal=internal)
    with_score = set(zip(scored[0].tolist(), scored[1].tolist(), strict=True))
    assert len(grown & with_score) == min(count, len(with_score))  # those that have a score come first
    if not sampled:
        wanted = list(zip(scored[0].tolist(), scored[1].tolist(), strict=True))[:count]
        first = list(zip(sources.tolist(), targets.tolist(), strict=True))[: len(wanted)]
        assert first == wanted
    again = grow(site, dropped, count, np.random.default_rng(seed))
    assert (again[0].tolist(), again[1].tolist()) == (sources.tolist(), targets.tolist())


def test_dropped_edges_may_return_and_lend_no_score() -> None:
    edges, _ = Edges.from_coo([0, 0, 1, 1], [0, 1, 0, 1], (3, 3))
    site = site_of(edges)
    assert [a.tolist() for a in hebb(site, np.array([3]), 1, np.random.default_rng(0))] == [[1], [1]]
    # Without (1, 0) there is no path of length 3 left: what comes is random, not the edge just dropped only.
    places = {
        tuple(np.concatenate(hebb(site, np.array([2, 3]), 1, np.random.default_rng(k))).tolist())
        for k in range(200)
    }
    assert len(places) == 7


def test_sampling_differs_by_seed_and_spares_the_generator_otherwise() -> None:
    edges, _ = Edges.from_coo(*distinct_edges(np.random.default_rng(0), (40, 40), 200), (40, 40))
    site, dropped = site_of(edges), np.arange(0, 200, 4)
    soft = cannistraci_hebb(internal=True, sampled=True)
    one, two = (soft(site, dropped, 50, np.random.default_rng(k)) for k in (0, 1))
    assert one[0].tolist() != two[0].tolist()
    rng = np.random.default_rng(0)
    hebb(site, dropped, 50, rng)
    assert rng.random() == np.random.default_rng(0).random()


def test_memory_is_that_of_edges_and_block() -> None:
    """A layer of 4·10**8 places, of which some 10**7 have a score."""
    shape = (20_000, 20_000)
    edges, _ = Edges.from_coo(*distinct_edges(np.random.default_rng(0), shape, 100_000), shape)
    site, block = site_of(edges), 2**17
    edges.by_target  # noqa: B018
    grow = cannistraci_hebb(block=block)
    grow(site, np.arange(10), 10, np.random.default_rng(0))
    tracemalloc.start()
    grow(site, np.arange(10_000), 10_000, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * edges.nnz + 50 * block


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(KindError, match="internal"):
        cannistraci_hebb(internal="CH2")  # type: ignore[arg-type]
    with pytest.raises(KindError, match="sampled"):
        cannistraci_hebb(sampled=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="block"):
        cannistraci_hebb(block=0)
    full, _ = Edges.from_coo([0], [0], (1, 1))
    with pytest.raises(ArgumentError, match="free places"):
        hebb(site_of(full), np.array([], dtype=int), 1, np.random.default_rng(0))
