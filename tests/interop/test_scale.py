"""`Scale`, which brings rows to a length of 1."""

from __future__ import annotations

import numpy as np
import pytest

import gbnn
from gbnn.errors import GbnnError
from gbnn.interop.sklearn.scale import Scale
from gbnn.layers import Chain, Dense
from gbnn.rows import SparseRows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_value_and_pullback_dense_and_sparse(dtype):
    x = np.array([[1, 0, -2], [0, 3, 0]], dtype)
    y, pullback = Scale(0.5).forward(x)
    np.testing.assert_array_equal(y, x / 2)
    assert y.dtype == dtype
    assert y.flags.f_contiguous
    dy = np.ones((2, 3), dtype)
    np.testing.assert_array_equal(pullback(dy)[0], dy / 2)
    rows = SparseRows.from_dense(x)
    y, pullback = Scale(0.5).forward(rows)
    assert y.same_pattern(rows)
    np.testing.assert_array_equal(y.to_dense(), x / 2)
    for given in (dy, SparseRows.from_dense(dy)):
        dx, gradients = pullback(given)
        assert dx.columns is rows.columns
        np.testing.assert_array_equal(dx.values, [0.5, 0.5, 0.5])
        assert gradients == {}
    assert pullback(dy, inputs=False) == (None, {})
    with pytest.raises(GbnnError, match=r"Scale.pullback dy"):
        pullback(dy[:1])


def test_it_is_saved(tmp_path):
    model = Chain(Scale(0.25), Dense.random(3, 2, seed=0))
    gbnn.save(tmp_path / "model", model)
    again = gbnn.load(tmp_path / "model", known=[Scale])
    assert again[0].factor == 0.25
