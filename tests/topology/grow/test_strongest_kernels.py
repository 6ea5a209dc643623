"""The compiled loops of the search for the strongest edges, to the bit against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gbnn.semirings import Probe, kernels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_exact_scores_are_summed_in_order(dtype: Any, size: int) -> None:
    rng = np.random.default_rng(size)
    x, dy = (np.asfortranarray(rng.standard_normal((37, n)), dtype) for n in (size, 2 * size))
    x[rng.random(x.shape) < 0.3] = 0
    expected = np.zeros((size, 2 * size))
    for row, other in zip(x.astype(np.float64), dy.astype(np.float64), strict=True):
        expected += row[:, None] * other
    sources, targets = np.divmod(rng.permutation(2 * size * size), 2 * size)
    pairs = Probe(x, dy).exact(sources, targets)
    np.testing.assert_array_equal(pairs, expected[sources, targets])
    block = np.full(expected.shape, np.nan)
    kernels.exact_block(np.ascontiguousarray(x.T), np.ascontiguousarray(dy), block)
    np.testing.assert_array_equal(block, expected)


def test_exact_scores_of_no_edges() -> None:
    none = np.empty(0, dtype=np.int64)
    assert Probe(np.ones((2, 3), order="F"), np.ones((2, 3), order="F")).exact(none, none).size == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
def test_reaching(dtype: Any, size: int) -> None:
    values = np.random.default_rng(0).standard_normal(size).astype(dtype)
    values[3:60:7], values[5:60:20], values[6:60:20] = 0, np.nan, -np.inf
    out = np.empty(size, dtype=np.int64)
    for low in (0.0, 1e-3, 2.0, float(np.abs(values[:1]).sum()), np.inf):
        expected = np.flatnonzero(~(np.abs(values) < dtype(low)))
        np.testing.assert_array_equal(kernels.reaching(values, dtype(low), out), expected)
