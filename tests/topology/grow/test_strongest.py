"""The strongest absent edges by both routes, against a full sort of a dense float64 gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.sampling import distinct_edges
from gbnn.semirings import Probe
from gbnn.topology.grow import strongest_finalists
from gbnn.topology.grow.strongest import Search, _even, search_absent, strongest_absent
from tests.support.memory import peak_while

Array = np.ndarray[Any, Any]
patient = settings(deadline=None)  # other work may keep the cores busy
ROUTES: list[Any] = ["blocks", "bound", None]
both = pytest.mark.parametrize("route", ROUTES[:2])


def by_sorting(probe: Probe, present: Edges, count: int) -> tuple[Array, Array, Array]:
    """Sort all absent edges by (-|s|, source, target), s summed in float64 in the order of the samples."""
    s = np.zeros(probe.shape)
    for x, dy in zip(probe.x.astype(np.float64), probe.dy.astype(np.float64), strict=True):
        s += x[:, None] * dy
    size = np.abs(s)
    size[present.sources, present.targets] = -1
    best = np.lexsort((np.arange(size.size), -size.ravel()))[:count]
    return best // size.shape[1], best % size.shape[1], size.ravel()[best]


def check(probe: Probe, present: Edges, count: int, **options: Any) -> Search:
    """Compare a search with the reference, to the bit."""
    found = search_absent(probe, present, count, **options)
    assert found.sources.dtype == found.targets.dtype == np.int64
    for got, expected in zip(found, by_sorting(probe, present, count), strict=False):
        np.testing.assert_array_equal(got, expected)
    assert 0 <= found.visited <= 1
    return found


def some_edges(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
    return Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)[0]


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    return np.asfortranarray(rng.standard_normal(shape), dtype)


def values(rng: np.random.Generator, kind: str, batch: int, size: int, dtype: Any) -> Array:
    """Make activations or gradients of one kind."""
    array = rng.standard_normal((batch, size))
    if kind == "tied":
        array = rng.integers(-2, 3, (batch, size))
    elif kind == "sparse":
        array *= rng.random((batch, size)) < 0.15
    elif kind == "skewed":
        array *= np.exp(3 * rng.standard_normal(size))
    elif kind == "extreme":  # squares or products leave the range of the dtype at the lower end
        array *= 10.0 ** rng.integers(-30 if dtype == np.float32 else -300, 5, size)
    elif kind == "repeated":  # the same neuron many times: exact ties of real numbers
        array = array[:, rng.integers(0, size, size) // 3]
    return np.asfortranarray(array, dtype)


KINDS = ["real", "tied", "sparse", "skewed", "extreme", "repeated"]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(st.integers(1, 24), st.integers(1, 24), st.integers(0, 9), st.data())
def test_both_routes_find_the_head_of_a_sort(
    kind: str, rows: int, columns: int, batch: int, data: st.DataObject
) -> None:
    places = rows * columns
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    nnz = data.draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
    count = data.draw(st.one_of(st.sampled_from([0, places - nnz]), st.integers(0, places - nnz)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    probe = Probe(values(rng, kind, batch, rows, dtype), values(rng, kind, batch, columns, dtype))
    block = data.draw(st.sampled_from([5, 40, places, 2**18]))
    present = some_edges(rng, (rows, columns), nnz)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strongest_finalists, "_TOGETHER", data.draw(st.sampled_from([1, 2**15])))
        for route in ROUTES:
            check(probe, present, count, block=block, route=route)


@both
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 700, 20_000])
def test_wider_than_the_sample_and_a_tile(kind: str, count: int, route: Any) -> None:
    rng = np.random.default_rng(3)
    probe = Probe(values(rng, kind, 12, 400, np.float32), values(rng, kind, 12, 300, np.float32))
    check(probe, some_edges(rng, (400, 300), 3000), count, block=4096, route=route)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the floor rise with each tile, as it does in large layers."""
    monkeypatch.setattr(strongest_finalists, "_TOGETHER", 1)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [40, 1000])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("hasty")
def test_rounding_of_blas_does_not_decide(seed: int, route: Any, dtype: Any, count: int) -> None:
    # Every edge's derivative is nearly the same: of one value in each neuron the last bit was changed.
    # BLAS errs alike for all of them: for some seeds downwards, so that all seem too weak.
    rng = np.random.default_rng(seed)
    x, dy = normal(rng, 200, 1, dtype=dtype).repeat(90, 1), normal(rng, 200, 1, dtype=dtype).repeat(80, 1)
    for side in (x, dy):
        at = rng.integers(0, 200, side.shape[1]), np.arange(side.shape[1])
        side[at] = np.nextafter(side[at], np.inf)
    probe, present = Probe(np.asfortranarray(x), np.asfortranarray(dy)), some_edges(rng, (90, 80), 500)
    found = check(probe, present, count, block=2**8, route=route)
    rounded = np.abs(probe.block(0, 80)).astype(np.float64)
    rounded[present.sources, present.targets] = -1
    by_blas = set(np.argsort(-rounded, axis=None)[:count].tolist())
    assert by_blas != set((found.sources * 80 + found.targets).tolist())  # it would have


@both
@pytest.mark.usefixtures("hasty")
def test_an_edge_as_strong_as_the_worst_found_but_visited_later(route: Any) -> None:
    # s is 2 to the i + j, and so is its bound: among equal edges the smaller comes last by the bound.
    powers = np.asfortranarray(2.0 ** np.arange(12)[None])
    for count in range(1, 100):
        check(Probe(powers, powers), Edges.from_coo([2, 5], [7, 6], (12, 12))[0], count, block=1, route=route)
    # Within one row: equal scores, rising norms.
    x, dy = np.array([[1.0], [0]], order="F"), np.asfortranarray([np.ones(8), np.arange(8)])
    check(Probe(x, dy), Edges.from_coo([0], [1], (1, 8))[0], 3, block=1, route=route)


@both
def test_a_guess_that_is_too_high_costs_no_edge(route: Any) -> None:
    # The neurons the first guess rests on are the only ones with large derivatives; all norms are equal.
    rng, width = np.random.default_rng(0), 400
    x, dy = (np.zeros((3, width), order="F") for _ in range(2))
    x[0], dy[0] = rng.uniform(0, 0.1, width), rng.uniform(0, 0.1, width)
    x[1], dy[2] = np.sqrt(1 - x[0] ** 2), np.sqrt(1 - dy[0] ** 2)
    chosen = _even(width)
    x[:, chosen] = dy[:, chosen] = np.array([[1.0], [0], [0]])
    check(Probe(x, dy), some_edges(rng, (width, width), 1000), chosen.size**2 + 5000, route=route)


@both
def test_no_gradient_at_all_takes_the_first_places(route: Any) -> None:
    present, _ = Edges.from_coo([0, 1], [1, 0], (3, 3))
    probe = Probe(np.zeros((2, 3), order="F"), np.ones((2, 3), order="F"))
    found = check(probe, present, 4, route=route)
    assert found.visited == 0


@both
def test_silent_neurons_and_samples_are_not_visited(route: Any) -> None:
    rng = np.random.default_rng(1)
    x, dy = normal(rng, 10, 60), normal(rng, 10, 50)
    x[:, 10:] = 0
    dy[:, :45] = 0
    x[3:6] = 0
    dy[8] = 0
    found = check(Probe(x, dy), some_edges(rng, (60, 50), 100), 60, route=route)
    assert found.visited == 10 * 5 / (60 * 50)


def test_the_route_by_bound_is_taken_where_norms_differ() -> None:
    rng = np.random.default_rng(2)
    x, dy = normal(rng, 16, 500), normal(rng, 16, 500)
    present = some_edges(rng, (500, 500), 2500)
    even = check(Probe(x, dy), present, 800, block=2**10)
    assert (even.route, even.visited) == ("blocks", 1)
    skewed = Probe(x * np.exp(2 * rng.standard_normal(500)).astype(np.float32), dy)
    pruned = check(skewed, present, 800, block=2**10)
    assert pruned.route == "bound"
    assert pruned.visited < 0.3


def test_a_batch_too_large_for_float32() -> None:
    rng = np.random.default_rng(3)
    probe = Probe(normal(rng, 2**14 + 1, 9), normal(rng, 2**14 + 1, 8))
    check(probe, some_edges(rng, (9, 8), 20), 10)


def test_norms_whose_squares_leave_float64() -> None:
    # The tiny by the huge is as strong as the ordinary by the ordinary.
    rng = np.random.default_rng(4)
    x, dy = (normal(rng, 5, n, dtype=np.float64) for n in (40, 30))
    x[:, 30:] *= 1e-170
    dy[:, :10] *= 1e150
    dy[:, 10:] *= 1e-20
    for route in ROUTES:
        check(Probe(x, dy), some_edges(rng, (40, 30), 10), 400, route=route, block=16)


@pytest.mark.parametrize("kind", ["ties", "real"])
def test_nothing_of_size_in_x_out_is_made(kind: str) -> None:
    width = 5000 if kind == "ties" else 10_000
    nnz, count, block = 30_000, 10_000, 2**16
    rng = np.random.default_rng(0)
    present = some_edges(rng, (width, width), nnz)
    probe = Probe(normal(rng, 1, width), normal(rng, 1, width))
    if kind == "ties":  # all edges tie: the most candidates that a block can have
        probe = Probe(np.sign(probe.x), np.sign(probe.dy))
    strongest_absent(Probe(probe.x[:, :9], probe.dy[:, :9]), some_edges(rng, (9, 9), 1), 5)  # compiles
    present.by_target  # noqa: B018  the layer has it anyway
    for route in ROUTES[:2]:
        peak, found = peak_while(lambda: search_absent(probe, present, count, block=block, route=route))  # noqa: B023
        # At most eight numbers of 8 bytes at a time for each edge, finalist, entry of a block and neuron.
        assert peak < 64 * (nnz + count + block + 2 * width)
        assert peak < width * width / 4  # bytes: not even a quarter of a mask
        if kind == "ties":
            keys = np.setdiff1d(np.arange(count + nnz), present.sources * width + present.targets)[:count]
            np.testing.assert_array_equal(found.sources * width + found.targets, keys)


def test_a_huge_layer_of_which_little_is_active() -> None:
    shape = (2**23, 2**22)  # more places than derivatives may be computed
    present, _ = Edges.from_coo([3, 2**22], [5, 7], shape)
    x, dy = np.zeros((1, shape[0]), np.float32, order="F"), np.zeros((1, shape[1]), np.float32, order="F")
    x[0, [3, 2**22]], dy[0, [5, 7]] = [1, 2], [3, -4]
    found = search_absent(Probe(x, dy), present, 4)
    assert found.sources.tolist() == [2**22, 3, 0, 0]
    assert found.targets.tolist() == [5, 7, 0, 1]
    assert found.scores.tolist() == [6, 4, 0, 0]
    assert found.visited == 4 / 2**45


# -- Refused -------------------------------------------------------------------------------------------------

SMALL = Edges.from_coo([0], [0], (2, 3))[0]
PROBE = Probe(np.ones((1, 2), order="F"), np.ones((1, 3), order="F"))


@pytest.mark.parametrize("count", [6, -1, 1.0, True])
def test_counts(count: Any) -> None:
    with pytest.raises(GbnnError, match="count"):
        strongest_absent(PROBE, SMALL, count)


@pytest.mark.parametrize("block", [0, -1, 2.0])
def test_blocks(block: Any) -> None:
    with pytest.raises(GbnnError, match="block"):
        strongest_absent(PROBE, SMALL, 1, block=block)


def test_unknown_routes() -> None:
    with pytest.raises(ArgumentError, match="route: expected 'blocks', 'bound' or None, got 'dense'"):
        strongest_absent(PROBE, SMALL, 1, route="dense")  # type: ignore[arg-type]


def test_another_layer() -> None:
    with pytest.raises(ArgumentError, match=r"probe: expected one of a 3 x 2 layer, got shape \(2, 3\)"):
        strongest_absent(PROBE, Edges.from_coo([0], [0], (3, 2))[0], 1)


@both
def test_more_work_than_the_limit(route: Any) -> None:
    rng = np.random.default_rng(5)
    probe, present = Probe(normal(rng, 4, 50), normal(rng, 4, 40)), some_edges(rng, (50, 40), 10)
    check(probe, present, 30, route=route, limit=2000)
    with pytest.raises(ArgumentError, match=r"gradient growth: expected at most 99 derivatives .*limit"):
        search_absent(probe, present, 30, route=route, limit=99, block=16)


@both
@pytest.mark.parametrize("huge", [[1e30, 1e30], [1e30, -1e30]], ids=["infinite", "nan"])
def test_derivatives_that_overflow(huge: list[float], route: Any) -> None:
    x, dy = np.ones((2, 4), np.float32, order="F"), np.ones((2, 40), np.float32, order="F")
    x[:, 1], dy[:, 30] = 1e30, huge
    held, _ = Edges.from_coo([1], [30], (4, 40))  # overflow at an edge that is there is none of absent ones
    check(Probe(x, dy), held, 3, route=route)
    with pytest.raises(NonFiniteError, match="gradient growth: expected finite derivatives"):
        strongest_absent(Probe(x, dy), Edges.from_coo([0], [0], (4, 40))[0], 3, route=route)


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["source", "target"])
def test_values_that_are_not_finite(bad: float, side: str, route: Any) -> None:
    rng = np.random.default_rng(6)
    x, dy = normal(rng, 3, 5), normal(rng, 3, 7)
    (x if side == "source" else dy)[1, 2] = bad
    ends = [np.full(7, 2), np.arange(7)] if side == "source" else [np.arange(5), np.full(5, 2)]
    held, _ = Edges.from_coo(ends[0], ends[1], (5, 7))  # all edges of that neuron are there
    good = Probe(np.nan_to_num(x, posinf=0, neginf=0), np.nan_to_num(dy, posinf=0, neginf=0))
    found = search_absent(Probe(x, dy), held, 6, route=route)
    for got, expected in zip(found, by_sorting(good, held, 6), strict=False):
        np.testing.assert_array_equal(got, expected)
    fewer, _ = Edges.from_coo(ends[0][1:], ends[1][1:], (5, 7))
    with pytest.raises(NonFiniteError, match=f"NaN or infinity at {side} 2"):
        strongest_absent(Probe(x, dy), fewer, 6, route=route)


@pytest.mark.parametrize("bad", [None, 5, "probe", np.ones((2, 3)), []])
def test_what_is_no_layer(bad: Any) -> None:
    with pytest.raises(KindError, match=r"^probe: expected a Probe"):
        search_absent(bad, SMALL, 1)
    with pytest.raises(KindError, match=r"^present: expected Edges"):
        search_absent(PROBE, bad, 1)
