"""Which edges come: random ones against sets, the strongest ones against a full sort of a dense gradient."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, NonFiniteError
from gbnn.layers import Linear
from gbnn.sampling import distinct_edges
from gbnn.semirings import Probe, Semiring, log_plus, min_plus, plus_times
from gbnn.topology import Site, gradient, random, sites, strongest_absent
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


# -- The strongest -------------------------------------------------------------------------------------------


def by_sorting(x: Array, dy: Array, present: Edges, count: int) -> Pairs:
    """Sort all absent edges of the dense gradient by (-|g|, source, target)."""
    strength = np.abs(np.einsum("bi,bj->ij", x, dy))
    strength[present.sources, present.targets] = -1
    key = np.arange(strength.size)
    best = np.lexsort((key, -strength.ravel()))[:count]
    columns = present.shape[1]
    return pairs(best // columns, best % columns)


@patient
@given(graphs(), st.sampled_from([np.float32, np.float64]), st.data())
def test_strongest_absent_is_the_head_of_a_sort(edges: Edges, dtype: Any, data: st.DataObject) -> None:
    # Small integers: gradients are exact, zeros and ties abound.
    rows, columns = edges.shape
    batch = data.draw(st.integers(1, 3))
    x, dy = (
        np.asfortranarray(data.draw(arrays(np.int8, (batch, n), elements=st.integers(-2, 2))), dtype)
        for n in (rows, columns)
    )
    absent = rows * columns - edges.nnz
    count = data.draw(st.one_of(st.sampled_from([0, absent]), st.integers(0, absent)))
    block = data.draw(st.integers(1, rows * columns + 1))
    grown = pairs(*strongest_absent(Probe(x, dy), edges, count, block=block))
    assert grown == by_sorting(x, dy, edges, count)


@pytest.mark.parametrize("block", [1, 61, 60 * 7, 2**21])
@pytest.mark.parametrize("count", [1, 17, 2600])
def test_strongest_absent_of_real_numbers(block: int, count: int) -> None:
    rng = np.random.default_rng(0)
    edges, _ = Edges.from_coo(*distinct_edges(rng, (60, 50), 400), (60, 50))
    x, dy = (np.asfortranarray(rng.standard_normal((9, n))) for n in (60, 50))
    x[:, 20:30] = 0  # inputs that never fire
    grown = strongest_absent(Probe(x, dy), edges, count, block=block)
    assert pairs(*grown) == by_sorting(x, dy, edges, count)


def test_strongest_absent_without_any_gradient_takes_the_first_places() -> None:
    edges, _ = Edges.from_coo([0, 1], [1, 0], (3, 3))
    probe = Probe(np.zeros((2, 3), order="F"), np.ones((2, 3), order="F"))
    grown = strongest_absent(probe, edges, 4, block=3)
    assert pairs(*grown) == [(0, 0), (0, 2), (1, 1), (1, 2)]


@pytest.mark.parametrize("kind", ["signs", "real"])
def test_strongest_absent_makes_nothing_of_size_in_x_out(kind: str) -> None:
    width, nnz, count, block = 20_000, 100_000, 30_000, 2**18
    rng = np.random.default_rng(0)
    edges, _ = Edges.from_coo(*distinct_edges(rng, (width, width), nnz), (width, width))
    x, dy = (np.asfortranarray(rng.standard_normal((1, width)), np.float32) for _ in range(2))
    if kind == "signs":  # all gradients tie: the most candidates that a block can have
        x, dy = np.sign(x), np.sign(dy)
    probe = Probe(x, dy)
    tracemalloc.start()
    sources, targets = strongest_absent(probe, edges, count, block=block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # At most eight numbers of 8 bytes at a time for each edge, finalist and entry of a block.
    assert peak < 64 * (nnz + count + block)
    assert peak < width * width / 10  # bytes: not even a tenth of a mask
    if kind == "signs":
        keys = np.setdiff1d(np.arange(count + nnz), edges.sources * width + edges.targets)[:count]
        np.testing.assert_array_equal(sources * width + targets, keys)


SMALL = Edges.from_coo([0], [0], (2, 3))[0]
PROBE = Probe(np.ones((1, 2), order="F"), np.ones((1, 3), order="F"))


@pytest.mark.parametrize("count", [6, -1, 1.0, True])
def test_strongest_absent_counts(count: Any) -> None:
    with pytest.raises(GbnnError, match="count"):
        strongest_absent(PROBE, SMALL, count)


@pytest.mark.parametrize("block", [0, -1, 2.0])
def test_strongest_absent_blocks(block: Any) -> None:
    with pytest.raises(GbnnError, match="block"):
        strongest_absent(PROBE, SMALL, 1, block=block)


@pytest.mark.parametrize("huge", [[1e30, 1e30], [1e30, -1e30]], ids=["infinite", "nan"])
def test_strongest_absent_where_derivatives_overflow(huge: list[float]) -> None:
    x, dy = np.ones((2, 4), np.float32, order="F"), np.ones((2, 40), np.float32, order="F")
    x[:, 1], dy[:, 30] = 1e30, huge
    held, _ = Edges.from_coo([1], [30], (4, 40))  # overflow at an edge that is there is none of absent ones
    strongest_absent(Probe(x, dy), held, 3)
    with pytest.raises(NonFiniteError, match="gradient growth: expected finite derivatives"):
        strongest_absent(Probe(x, dy), Edges.from_coo([0], [0], (4, 40))[0], 3)


def test_strongest_absent_of_another_layer() -> None:
    with pytest.raises(ArgumentError, match=r"probe: expected one of a 3 x 2 layer, got shape \(2, 3\)"):
        strongest_absent(PROBE, Edges.from_coo([0], [0], (3, 2))[0], 1)


def test_strongest_absent_of_a_hopelessly_large_layer() -> None:
    huge, _ = Edges.from_coo([0], [0], (2**23, 2**22))
    probe = Probe(np.broadcast_to(np.float32(1), (1, 2**23)), np.broadcast_to(np.float32(1), (1, 2**22)))
    with pytest.raises(ArgumentError, match=r"at most 2\*\*44 places"):
        strongest_absent(probe, huge, 1)


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
