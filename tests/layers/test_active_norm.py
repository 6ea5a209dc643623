"""LayerNorm over active entries, against the definition, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.errors import ArgumentError
from gbnn.layers import LayerNorm
from gbnn.rows import SparseRows


def rows_of(sizes, features=9, seed=0, dtype=np.float64, mean=0.0):
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(features, size, replace=False)) for size in sizes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = (rng.standard_normal(starts[-1]) + mean).astype(dtype)
    return SparseRows(starts, np.concatenate([*columns, []]).astype(np.int64), values, (len(sizes), features))


def made(features=9, **options):
    layer = LayerNorm(features, **({"dtype": np.float64} | options))
    layer.scale[...] = np.random.default_rng(5).uniform(0.5, 2, features)
    layer.shift[...] = np.random.default_rng(6).uniform(-1, 1, features)
    return layer


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.floats(-5, 5))
def test_definition(sizes, mean):
    x, layer = rows_of(sizes, mean=mean), made(epsilon=1e-3)
    y, _ = layer.forward(x)
    assert y.same_pattern(x)
    for b in range(len(sizes)):
        row = slice(x.starts[b], x.starts[b + 1])
        values, columns = x.values[row], x.columns[row]
        if not values.size:
            continue
        normal = (values - values.mean()) / np.sqrt(values.var() + 1e-3)
        np.testing.assert_allclose(
            y.values[row], layer.scale[columns] * normal + layer.shift[columns], rtol=1e-9
        )


def test_full_rows_are_as_those_of_an_array():
    x = np.random.default_rng(0).standard_normal((5, 9))
    dy = np.random.default_rng(1).standard_normal((5, 9))
    y, pullback = made().forward(SparseRows.from_dense(x))
    expected, back = made().forward(x)
    np.testing.assert_allclose(y.to_dense(), expected, rtol=1e-12)
    (dx, gradients), (dx_expected, gradients_expected) = pullback(dy), back(dy)
    np.testing.assert_allclose(dx.to_dense(), dx_expected, rtol=1e-9, atol=1e-12)
    for name in ("scale", "shift"):
        np.testing.assert_allclose(gradients[name], gradients_expected[name], rtol=1e-9)
        assert gradients[name].shape == (9,)


def test_one_entry_gives_the_shift():
    layer = made()
    y, pullback = layer.forward(rows_of([1, 1, 0]))
    np.testing.assert_allclose(y.values, layer.shift[y.columns])
    np.testing.assert_allclose(pullback(np.ones(y.shape))[0].values, 0, atol=1e-12)


@pytest.mark.parametrize("mean", [0.0, 1e3, -1e6])
def test_large_mean_in_float32(mean):
    x = rows_of([40, 50, 64], features=64, dtype=np.float32, mean=mean)
    dy = np.random.default_rng(2).standard_normal(x.shape).astype(np.float32)
    y, pullback = made(64, dtype=np.float32).forward(x)
    expected, back = made(64, epsilon=1e-5).forward(x.astype(np.float64))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.values, expected.values, rtol=2e-5, atol=2e-5)
    dx, gradients = pullback(dy)
    dx_expected, gradients_expected = back(dy)
    assert dx.dtype == np.float32
    np.testing.assert_allclose(dx.values, dx_expected.values, rtol=2e-4, atol=2e-5)
    for name in ("scale", "shift"):
        assert gradients[name].dtype == np.float32
        np.testing.assert_allclose(gradients[name], gradients_expected[name], rtol=2e-4, atol=2e-4)


def test_later_training_does_not_change_a_pullback():
    layer, x = made(), rows_of([3, 5])
    y, pullback = layer.forward(x)
    dx, gradients = pullback(y)
    layer.scale *= 3
    layer.shift += 1
    again, others = pullback(y)
    np.testing.assert_array_equal(again.values, dx.values)
    np.testing.assert_array_equal(others["scale"], gradients["scale"])


def test_what_is_refused():
    layer = made()
    with pytest.raises(ArgumentError, match=r"LayerNorm\.forward x.*\(batch, 9\)"):
        layer.forward(rows_of([2], features=8))
    _, pullback = layer.forward(rows_of([2]))
    with pytest.raises(ArgumentError, match=r"LayerNorm\.pullback dy"):
        pullback(np.ones((1, 8)))
