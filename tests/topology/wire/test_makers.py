"""Every maker of graphs: exact counts, sound edges, the same graph for a seed, memory that follows edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn import layers, models
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.topology import wire
from gbnn.topology.wire.maker import balanced, within

Shape = tuple[int, int]
side = st.integers(1, 12) | st.integers(1, 50)


@st.composite
def any_count(draw: st.DrawFn) -> tuple[Shape, int]:
    shape = draw(st.tuples(side, side))
    places = shape[0] * shape[1]
    near = st.sampled_from([0, 1, places // 2, places // 2 + 1, places - 1, places])
    return shape, draw(st.integers(0, places) | near)


@st.composite
def groups_of_four(draw: st.DrawFn) -> tuple[Shape, int | None]:
    rows, columns = 4 * draw(st.integers(1, 5)), draw(side)
    return (rows, columns), draw(st.sampled_from([None, rows * columns // 2]))


@st.composite
def blocks_of_three(draw: st.DrawFn) -> tuple[Shape, int]:
    rows, columns = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    return (3 * rows, 3 * columns), 9 * draw(st.integers(0, rows * columns))


@st.composite
def fan_in_of_six(draw: st.DrawFn) -> tuple[Shape, int | None]:
    rows = draw(st.integers(6, 20))
    columns = draw(st.integers(1, 5)) * rows // math.gcd(rows, 6)
    return (rows, columns), draw(st.sampled_from([None, 6 * columns]))


@dataclass(frozen=True)
class Case:
    """A maker, sizes it can have, a small and a large one of them, and whether that goes on to 2**60."""

    make: Callable[..., Edges]
    sizes: st.SearchStrategy[tuple[Shape, int | None]]
    small: tuple[Shape, int] = ((60, 50), 700)
    large: tuple[Shape, int] = ((200_000, 150_000), 60_000)
    huge: bool = True


GIVEN, _ = Edges.from_coo([0, 3, 3], [1, 0, 4], (4, 5))
AS_GIVEN = ((4, 5), 3)
CASES = {
    "random": Case(wire.random, any_count()),
    "constant_fan_in": Case(wire.constant_fan_in, any_count()),
    "constant_fan_out": Case(wire.constant_fan_out, any_count()),
    "regular": Case(wire.regular, any_count()),
    "small_world 0": Case(wire.small_world(0.0), any_count()),
    "small_world 0.3": Case(wire.small_world(0.3), any_count()),
    "small_world 1": Case(wire.small_world(1), any_count()),
    "scale_free": Case(wire.scale_free, any_count()),
    "blocks": Case(wire.blocks(3), blocks_of_three(), ((60, 90), 900), ((210_000, 150_000), 63_000)),
    "n_of_m": Case(wire.n_of_m(2, 4), groups_of_four(), ((40, 30), 600), ((1000, 400), 200_000), huge=False),
    "expander": Case(
        wire.expander(6), fan_in_of_six(), ((60, 60), 360), ((20_000, 10_000), 60_000), huge=False
    ),
    "fixed": Case(
        wire.fixed(GIVEN), st.sampled_from([((4, 5), None), AS_GIVEN]), AS_GIVEN, AS_GIVEN, huge=False
    ),
}
ANY_NNZ = [name for name, case in CASES.items() if case.huge and name != "blocks"]
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
of_any_nnz = pytest.mark.parametrize("case", [CASES[name] for name in ANY_NNZ], ids=ANY_NNZ)


def made(case: Case, shape: Shape, nnz: int | None, seed: int = 0) -> Edges:
    return case.make(np.random.default_rng(seed), shape, nnz)


def same(a: Edges, b: Edges) -> bool:
    return np.array_equal(a.sources, b.sources) and np.array_equal(a.targets, b.targets)


def check(edges: Edges, shape: Shape, nnz: int) -> None:
    """What is promised of all Edges: `from_coo` refuses any that are duplicate or out of range."""
    assert edges.shape == shape
    assert edges.nnz == nnz
    assert edges.sources.dtype == edges.targets.dtype == np.int64
    _, order = Edges.from_coo(edges.sources, edges.targets, shape)
    np.testing.assert_array_equal(order, np.arange(nnz))


@every
@settings(deadline=None, max_examples=40)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_exactly_the_edges_asked_for(case: Case, data: st.DataObject, seed: int) -> None:
    shape, nnz = data.draw(case.sizes)
    edges = made(case, shape, nnz, seed)
    check(edges, shape, edges.nnz if nnz is None else nnz)
    assert same(edges, made(case, shape, nnz, seed))
    if nnz is None:  # the number it has is also one it may be asked for
        assert same(edges, made(case, shape, edges.nnz, seed))


@of_any_nnz
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 4), (5, 5)])
def test_every_count_in_small_layers(case: Case, shape: Shape) -> None:
    for nnz in range(shape[0] * shape[1] + 1):
        for seed in range(3):
            check(made(case, shape, nnz, seed), shape, nnz)


@every
def test_as_networkx_and_scipy_see_it(case: Case) -> None:
    shape, nnz = case.small
    edges = made(case, shape, nnz)
    sources, targets = [("s", i) for i in range(shape[0])], [("t", j) for j in range(shape[1])]
    graph = nx.Graph()
    graph.add_nodes_from(sources, bipartite=0)
    graph.add_nodes_from(targets, bipartite=1)
    ends = zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)
    graph.add_edges_from((sources[i], targets[j]) for i, j in ends)
    assert nx.bipartite.is_bipartite(graph)
    assert graph.number_of_edges() == nnz
    matrix = sp.coo_array((np.ones(nnz), (edges.sources, edges.targets)), shape=shape).tocsr()
    assert matrix.nnz == nnz  # duplicates would have been added up
    np.testing.assert_array_equal([graph.degree[node] for node in sources], matrix.sum(axis=1))
    np.testing.assert_array_equal([graph.degree[node] for node in targets], matrix.sum(axis=0))
    assert same(wire.from_networkx(graph), edges)
    assert same(wire.from_scipy(matrix), edges)


@every
def test_another_seed_makes_another_graph(case: Case) -> None:
    shape, nnz = case.large
    one, other = (made(case, shape, nnz, seed) for seed in (1, 2))
    assert same(one, other) == (nnz == GIVEN.nnz)  # which is the same for all seeds


@every
def test_memory_follows_edges(case: Case) -> None:
    shape, nnz = case.large
    made(case, shape, nnz)  # whatever is loaded on first use
    peak, edges = peak_while(lambda: made(case, shape, nnz))
    assert edges.nnz == nnz
    assert peak < 20 * 8 * nnz + 50_000  # 20 numbers an edge at most, where in x out is 500,000 an edge


@pytest.mark.parametrize("shape", [(2**60, 2**60), (2**60, 20), (20, 2**60), (2**31, 2**33)])
@pytest.mark.parametrize("name", ANY_NNZ)
def test_the_largest_layers(name: str, shape: Shape) -> None:
    peak, edges = peak_while(lambda: made(CASES[name], shape, 2000))
    check(edges, shape, 2000)
    assert peak < 2_000_000
    if shape == (2**60, 2**60) and name != "scale_free":  # hubs decide its mean
        for ends in (edges.sources, edges.targets):
            assert abs(ends.astype(float).mean() / 2**60 - 0.5) < 6 / math.sqrt(12 * 2000)


def test_the_largest_layers_of_blocks() -> None:
    edges = made(CASES["blocks"], (3 * 2**58, 3 * 2**57), 900)
    check(edges, (3 * 2**58, 3 * 2**57), 900)


@of_any_nnz
def test_what_no_layer_can_have(case: Case) -> None:
    with pytest.raises(ArgumentError, match="nnz: expected at most 12, the places of a 3 x 4 layer, got 13"):
        made(case, (3, 4), 13)
    with pytest.raises(ArgumentError, match=r"nnz: expected an integer at least 0, got -1"):
        made(case, (3, 4), -1)
    with pytest.raises(ArgumentError, match="nnz: expected at most 1099511627776 edges"):
        made(case, (2**60, 2**60), 2**41)
    for nnz in (None, 3.0, True, "3"):
        with pytest.raises(KindError, match="nnz: expected an integer"):
            made(case, (3, 4), nnz)  # type: ignore[arg-type]


@every
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (4,), 4, None, (4.0, 4), (2**60 + 1, 4), (-4, 4), "44"])
def test_what_is_no_shape(case: Case, shape: Any) -> None:
    with pytest.raises(GbnnError, match=r"shape|_features"):
        made(case, shape, 3)


@every
def test_layers_and_models_of_it(case: Case) -> None:
    shape, nnz = case.small
    edges = made(case, shape, nnz)
    layer = layers.Linear.from_edges(edges, seed=1)
    assert layer.weights.edges is edges
    model = models.mlp(shape, nnz=nnz, wiring=case.make, seed=3)
    assert same(model[0].weights.edges, case.make(np.random.default_rng(3), shape, nnz))


# -- What the makers share -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 40) | st.just(2**60), st.integers(0, 200), st.integers(0, 2**32))
@example(7, 14, 0)
def test_balanced(neurons: int, total: int, seed: int) -> None:
    ids, counts = balanced(np.random.default_rng(seed), neurons, total)
    assert counts.sum() == total
    assert ids.size == counts.size == min(neurons, total)
    assert (np.diff(ids) > 0).all()
    assert not ids.size or (ids[0] >= 0 and ids[-1] < neurons)
    assert not ids.size or (counts.min() >= max(1, total // neurons) and counts.max() <= -(-total // neurons))


def test_balanced_gives_more_to_anyone() -> None:
    rng = np.random.default_rng(0)
    hits = sum(balanced(rng, 5, 12)[1] for _ in range(2000)) - 2 * 2000
    assert np.abs(hits - 800).max() < 6 * math.sqrt(2000 * 0.4 * 0.6)


def test_within() -> None:
    assert within(np.array([2, 0, 3, 1])).tolist() == [0, 1, 0, 1, 2, 0]
    assert within(np.empty(0, dtype=np.int64)).tolist() == []


def test_fixed_is_for_its_own_layer_only() -> None:
    make, rng = wire.fixed(GIVEN), np.random.default_rng(0)
    assert make(rng, (4, 5), 3) is make(rng, (4, 5), None) is GIVEN
    with pytest.raises(ArgumentError, match="shape: expected 4 x 5, that of the given edges"):
        make(rng, (5, 4), 3)
    with pytest.raises(ArgumentError, match="nnz: expected None or 3, the number of the given edges, got 4"):
        make(rng, (4, 5), 4)
    with pytest.raises(KindError, match="edges: expected gbnn Edges, got list"):
        wire.fixed([GIVEN])  # type: ignore[arg-type]
