"""N:M graphs and blocks: every group has its edges, every block is full or empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import models
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.topology import wire

RNG = np.random.default_rng(0)


def dense(edges: Edges) -> np.ndarray:
    array = np.zeros(edges.shape, dtype=np.int64)
    array[edges.sources, edges.targets] += 1
    return array


@settings(deadline=None)
@given(st.integers(1, 6), st.data(), st.integers(1, 5), st.integers(1, 9))
def test_every_group_of_every_target_has_its_edges(
    m: int, data: st.DataObject, groups: int, columns: int
) -> None:
    n = data.draw(st.integers(1, m))
    edges = wire.n_of_m(n, m)(np.random.default_rng(0), (m * groups, columns), None)
    assert (dense(edges).reshape(groups, m, columns).sum(axis=1) == n).all()
    assert edges.nnz == n * groups * columns


def test_n_of_m_that_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="shape: expected a multiple of 4 inputs, got 6 x 3"):
        wire.n_of_m(2, 4)(RNG, (6, 3), None)
    with pytest.raises(
        ArgumentError, match="nnz: expected None or 12, 2 for each 4 sources of 3 targets, got 11"
    ):
        wire.n_of_m(2, 4)(RNG, (8, 3), 11)
    with pytest.raises(ArgumentError, match="nnz: expected at most"):
        wire.n_of_m(2, 4)(RNG, (2**59, 2**59), None)


@pytest.mark.parametrize(
    ("n", "m", "where"), [(0, 4, "n"), (5, 4, "n"), (1, 0, "m"), (1.0, 4, "n"), (1, "4", "m")]
)
def test_what_is_no_n_of_m(n: Any, m: Any, where: str) -> None:
    with pytest.raises(GbnnError, match=f"^{where}: expected"):
        wire.n_of_m(n, m)


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 6), st.data())
def test_every_block_is_full_or_empty(size: int, rows: int, columns: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, rows * columns))
    shape = (size * rows, size * columns)
    edges = wire.blocks(size)(np.random.default_rng(0), shape, count * size**2)
    sums = dense(edges).reshape(rows, size, columns, size).sum(axis=(1, 3))
    assert set(np.unique(sums).tolist()) <= {0, size**2}
    assert np.count_nonzero(sums) == count


def test_blocks_that_cannot_be() -> None:
    with pytest.raises(
        ArgumentError, match=r"nnz: expected a multiple of 16, .* such as 160 or 176, got 170"
    ):
        wire.blocks(4)(RNG, (40, 40), 170)
    for shape in [(41, 40), (40, 41)]:
        with pytest.raises(ArgumentError, match="shape: expected multiples of 4, got 4"):
            wire.blocks(4)(RNG, shape, 160)
    for size in (0, -1, 2.0, None):
        with pytest.raises(GbnnError, match=r"^size: expected an integer"):
            wire.blocks(size)  # type: ignore[arg-type]


def test_natural_counts_in_a_model() -> None:
    model = models.mlp([16, 8, 4], wiring=[wire.n_of_m(1, 4), wire.expander(2)], seed=0)
    assert [layer.nnz for layer in model if hasattr(layer, "weights")] == [32, 8]
