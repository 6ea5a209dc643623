"""Regular graphs: balanced on both sides in every case; and how well they expand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import svds

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError
from gbnn.topology import wire
from gbnn.topology.wire import matching


def fans(edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = edges.shape
    return np.bincount(edges.sources, minlength=rows), np.bincount(edges.targets, minlength=columns)


def spread(edges: Edges) -> int:
    return max(int(fan.max() - fan.min()) for fan in fans(edges))


def matrix(edges: Edges) -> sp.csr_array:
    return sp.coo_array((np.ones(edges.nnz), (edges.sources, edges.targets)), shape=edges.shape).tocsr()


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 25), st.integers(1, 25), st.data())
def test_both_sides_are_balanced(rows: int, columns: int, data: st.DataObject) -> None:
    nnz = data.draw(st.integers(0, rows * columns))
    edges = wire.regular(np.random.default_rng(data.draw(st.integers(0, 99))), (rows, columns), nnz)
    assert edges.nnz == nnz
    assert spread(edges) <= 1


@pytest.mark.parametrize("density", [0.3, 0.5, 0.501, 0.7, 0.999, 1.0])
def test_dense_layers(density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    repaired = []
    repair = matching._repaired
    monkeypatch.setattr(matching, "_repaired", lambda *given: repaired.append(repair(*given)) or repaired[-1])
    edges = wire.regular(np.random.default_rng(0), (150, 100), round(15_000 * density))
    assert repaired == [True]  # matched, so random: the circulant stand-in is much less so
    assert edges.nnz == round(15_000 * density)
    assert spread(edges) <= 1


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_where_no_repair_is_tried(rows: int, columns: int, data: st.DataObject) -> None:
    """A matching that resists repair is replaced by a graph as balanced."""
    nnz = data.draw(st.integers(0, rows * columns))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "ROUNDS", 0)
        edges = wire.regular(np.random.default_rng(0), (rows, columns), nnz)
    assert edges.nnz == np.unique(edges.sources * columns + edges.targets).size == nnz
    assert spread(edges) <= 1


def test_repair_does_not_take_many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as 200 are allowed before the fallback; half full is the hardest that there is."""
    monkeypatch.setattr(matching, "ROUNDS", 60)
    keys = np.repeat(np.arange(200), 100) * 200 + np.random.default_rng(0).permutation(20_000) % 200
    assert matching._repaired(np.random.default_rng(0), keys, 200)
    assert np.unique(keys).size == 20_000


def test_repair_keeps_degrees() -> None:
    rng = np.random.default_rng(0)
    keys = np.repeat(np.arange(20), 8) * 16 + rng.permutation(np.repeat(np.arange(16), 10))
    assert np.unique(keys).size < 160
    assert matching._repaired(rng, keys, 16)
    assert np.unique(keys).size == 160
    np.testing.assert_array_equal(np.bincount(keys // 16), [8] * 20)
    np.testing.assert_array_equal(np.bincount(keys % 16), [10] * 16)


@pytest.mark.parametrize(("nnz", "graphs"), [(3, 6), (6, 6), (8, 9), (4, 45)])
def test_every_balanced_graph_can_come(nnz: int, graphs: int) -> None:
    """Of 3 x 3 places, counted by trying them all."""
    every = set()
    for bits in product((0, 1), repeat=9):
        dense = np.array(bits).reshape(3, 3)
        if dense.sum() == nnz and max(np.ptp(dense.sum(0)), np.ptp(dense.sum(1))) <= 1:
            every.add(bits)
    assert len(every) == graphs
    seen, rng = set(), np.random.default_rng(0)
    for _ in range(20 * graphs):
        edges = wire.regular(rng, (3, 3), nnz)
        seen.add(tuple(matrix(edges).toarray().astype(int).ravel().tolist()))
    assert seen == every


# -- Expanders -----------------------------------------------------------------------------------------------


def second_singular_value(edges: Edges) -> float:
    values = svds(matrix(edges), k=2, return_singular_vectors=False, random_state=0)
    return float(min(values))


@pytest.mark.parametrize(("shape", "fan_in"), [((600, 600), 4), ((600, 600), 9), ((800, 400), 8)])
def test_an_expander_is_nearly_ramanujan(shape: tuple[int, int], fan_in: int) -> None:
    edges = wire.expander(fan_in)(np.random.default_rng(0), shape)
    fan_out = fan_in * shape[1] // shape[0]
    assert [np.unique(fan).tolist() for fan in fans(edges)] == [[fan_out], [fan_in]]
    bound = math.sqrt(fan_in - 1) + math.sqrt(fan_out - 1)
    assert second_singular_value(edges) < 1.05 * bound
    assert second_singular_value(edges) > 0.9 * bound  # Alon and Boppana: no graph is much better
    # A lattice of the same degrees: its second value is nearly its first.
    lattice = wire.small_world(0.0)(np.random.default_rng(0), shape, edges.nnz)
    assert second_singular_value(lattice) > 0.99 * math.sqrt(fan_in * fan_out)
    assert connected_components(sp.block_array([[None, matrix(edges)], [matrix(edges).T, None]]))[0] == 1


def test_expanders_that_cannot_be() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match="fan_in: expected an integer at least 1, got 0"):
        wire.expander(0)
    with pytest.raises(KindError, match="fan_in"):
        wire.expander(2.0)  # type: ignore[arg-type]
    with pytest.raises(
        ArgumentError, match="fan_in: expected at most 3, the sources of a 3 x 4 layer, got 4"
    ):
        wire.expander(4)(rng, (3, 4), None)
    with pytest.raises(
        ArgumentError, match="fan_in: expected a number that gives 20 sources equally many of its 30 edges"
    ):
        wire.expander(3)(rng, (20, 10), None)
    with pytest.raises(ArgumentError, match="nnz: expected None or 60, 6 for each of 10 targets, got 61"):
        wire.expander(6)(rng, (20, 10), 61)
