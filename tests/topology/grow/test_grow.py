"""Which edges come: random ones against sets, the strongest ones against a full sort of a dense gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.layers import Linear
from gbnn.sampling import distinct_edges
from gbnn.semirings import Semiring, log_plus, min_plus, plus_times
from gbnn.topology import Site, gradient, random, sites
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
patient = settings(deadline=None)  # other work may keep the cores busy
Pairs = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    """Draw edges of a small layer: none, one, all, all but one, or any number; one neuron on a side."""
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    places = shape[0] * shape[1]
    nnz = draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)[0]


def pairs(sources: Array, targets: Array) -> Pairs:
    assert sources.dtype == targets.dtype == np.int64
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


def site_of(edges: Edges, grown_by: Any = None) -> Site:
    return Site("w", Weights(edges, np.ones(edges.nnz)), grown_by)


# -- Random --------------------------------------------------------------------------------------------------


@patient
@given(graphs(), st.data())
def test_random_takes_empty_places_first(edges: Edges, data: st.DataObject) -> None:
    empty = edges.shape[0] * edges.shape[1] - edges.nnz
    positions = st.sets(st.integers(0, edges.nnz - 1)) if edges.nnz else st.just(set())
    dropped = np.array(sorted(data.draw(positions)), dtype=np.int64)
    count = data.draw(st.integers(0, empty + dropped.size))
    seed = data.draw(st.integers(0, 2**32))
    grown = pairs(*random(site_of(edges), dropped, count, np.random.default_rng(seed)))
    assert len(grown) == len(set(grown)) == count
    assert all(0 <= i < edges.shape[0] and 0 <= j < edges.shape[1] for i, j in grown)
    old = pairs(edges.sources, edges.targets)
    again = set(grown) & set(old)
    assert again <= {old[k] for k in dropped}
    assert len(again) == max(0, count - empty)  # one just dropped only where nothing else is left
    assert pairs(*random(site_of(edges), dropped, count, np.random.default_rng(seed))) == grown


def test_random_is_uniform_over_empty_places() -> None:
    edges, _ = Edges.from_coo([0, 0, 1, 3], [0, 2, 1, 3], (4, 5))
    counts, rng = np.zeros((4, 5)), np.random.default_rng(0)
    dropped = np.array([1, 2])
    for _ in range(4000):
        sources, targets = random(site_of(edges), dropped, 3, rng)
        counts[sources, targets] += 1
    assert not counts[edges.sources, edges.targets].any()
    counts[edges.sources, edges.targets] = expected = 4000 * 3 / 16
    # A binomial of mean 750 has deviation 25: beyond 5 of them is no chance.
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_random_of_another_seed_is_another() -> None:
    edges, _ = Edges.from_coo([5], [5], (100, 100))
    first, second = (random(site_of(edges), np.empty(0, int), 20, np.random.default_rng(s)) for s in (0, 1))
    assert pairs(*first) != pairs(*second)


def test_random_of_those_just_dropped_where_it_must() -> None:
    edges, _ = Edges.from_coo(np.repeat(np.arange(4), 5), np.tile(np.arange(5), 4), (4, 5))
    dropped, rng = np.arange(0, 20, 2), np.random.default_rng(0)
    counts = np.zeros((4, 5))
    for _ in range(1000):
        counts[random(site_of(edges), dropped, 3, rng)] += 1
    assert np.abs(counts.ravel()[dropped] - 300).max() < 5 * np.sqrt(300)
    assert counts.sum() == counts.ravel()[dropped].sum() == 3000


def test_random_where_in_x_out_is_beyond_int64() -> None:
    edges, _ = Edges.from_coo([2**59, 0], [0, 2**59], (2**60, 2**60))
    grown = pairs(*random(site_of(edges), np.array([0]), 1000, np.random.default_rng(0)))
    assert len(set(grown)) == 1000
    assert max(max(pair) for pair in grown) > 2**58


def test_random_beyond_the_free_places() -> None:
    edges, _ = Edges.from_coo([0, 0, 1], [0, 1, 0], (2, 2))
    with pytest.raises(ArgumentError, match="count: expected at most 2 free places, got 3"):
        random(site_of(edges), np.array([0]), 3, np.random.default_rng(0))


SMALL = Edges.from_coo([0], [0], (2, 3))[0]


def by_sorting(x: Array, dy: Array, present: Edges, count: int) -> Pairs:
    """Sort all absent edges of the dense gradient by (-|g|, source, target)."""
    strength = np.abs(np.einsum("bi,bj->ij", x, dy))
    strength[present.sources, present.targets] = -1
    key = np.arange(strength.size)
    best = np.lexsort((key, -strength.ravel()))[:count]
    columns = present.shape[1]
    return pairs(best // columns, best % columns)


# -- The rule that grows them --------------------------------------------------------------------------------


def layer_site(semiring: Semiring, dtype: Any = np.float64) -> tuple[Site, Array, Array]:
    """A layer of this semiring as training sees it, its input and output gradient."""
    rng = np.random.default_rng(2)
    layer = Linear.random(9, 8, nnz=20, bias=False, semiring=semiring, dtype=dtype, seed=rng)
    x, dy = np.asfortranarray(rng.uniform(0.1, 0.9, (4, 9))), rng.standard_normal((4, 8))
    _, pullback = layer.forward(x, training=True)
    _, gradients = pullback(np.asfortranarray(dy))
    return sites(layer.parameters(), gradients)[0], x, dy


@pytest.mark.parametrize("dropped", [[], [3, 7, 11, 19], list(range(20))])
def test_gradient_takes_the_strongest_of_all_not_kept(dropped: list[int]) -> None:
    site, x, dy = layer_site(plus_times)
    gone = np.array(dropped, dtype=np.int64)
    kept, _ = Edges.from_coo(
        np.delete(site.weights.sources, gone), np.delete(site.weights.targets, gone), (9, 8)
    )
    for count in (0, 1, 30, 52 + gone.size):
        grown = pairs(*gradient(site, gone, count, np.random.default_rng(0)))
        assert grown == by_sorting(x, dy, kept, count)
        assert site.memory.layer["visited"] == (1 if count else 0)
    # The last took every free place: those just dropped are among them.
    assert set(pairs(site.weights.sources[gone], site.weights.targets[gone])) <= set(grown)


@pytest.mark.parametrize("semiring", [min_plus, log_plus], ids=str)
def test_gradient_is_for_plus_times_only(semiring: Semiring) -> None:
    site, _, _ = layer_site(semiring)
    with pytest.raises(ArgumentError, match=r"rewiring weights: expected .*plus_times layer"):
        gradient(site, np.array([0]), 1, np.random.default_rng(0))


def test_gradient_of_a_layer_that_has_none() -> None:
    with pytest.raises(ArgumentError, match=r"rewiring w: expected .*plus_times layer"):
        gradient(site_of(SMALL), np.array([0]), 1, np.random.default_rng(0))
