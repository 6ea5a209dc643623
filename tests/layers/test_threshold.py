"""Threshold: what passes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gbnn.errors import GbnnError
from gbnn.layers import Relu, Threshold
from gbnn.rows import SparseRows

X = np.array([[0.5, 0.0, 0.50001, -9.0], [np.nan, 2.0, -0.0, np.inf], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    "form", [X, np.asfortranarray(X), X.tolist(), sp.csr_array(X), SparseRows.from_dense(X)]
)
def test_entries_above_pass(form):
    y, pullback = Threshold(0.5).forward(form)
    dtype = np.float32 if isinstance(form, list) else np.float64
    assert y.columns.tolist() == [2, 0, 1, 3]
    assert y.starts.tolist() == [0, 1, 4, 4]
    assert (y.starts.dtype, y.columns.dtype) == (np.int64, np.int64)
    np.testing.assert_allclose(y.values.astype(dtype), [0.50001, np.nan, 2, np.inf], rtol=1e-6)
    dx = pullback(np.arange(12.0).reshape(3, 4))[0].to_dense()
    np.testing.assert_array_equal(dx, [[0, 0, 2, 0], [4, 5, 0, 7], [0, 0, 0, 0]])


def test_at_0_it_is_the_rectifier():
    x = np.random.default_rng(0).standard_normal((5, 6))
    y, expected = Threshold().forward(x)[0], Relu().forward(x)[0]
    np.testing.assert_array_equal(y.to_dense(), expected)
    assert y.nnz == (x > 0).sum()


@pytest.mark.parametrize("above", [-1e-9, np.nan, np.inf, None, "0", True, [0.5]])
def test_what_makes_no_sense(above):
    with pytest.raises(GbnnError, match="Threshold above: expected"):
        Threshold(above)
