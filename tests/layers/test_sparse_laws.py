"""What every layer of the table must do with sparse activations and sparse gradients."""

from __future__ import annotations

import graphblas as gb
import numpy as np
import pytest
import scipy.sparse as sp
from support.adjoint import numeric_gradient
from support.layer_table import ROWS, TABLE, Row, as_array, batch
from support.memory import peak_while

from gbnn import layers
from gbnn.errors import ArgumentError
from gbnn.rows import SparseRows

MODES = pytest.mark.parametrize("training", [False, True])


def sparse_batch(row: Row, seed: int = 0, dtype: type = np.float64) -> SparseRows:
    """A full row, an empty one, and others in between; ReLU-safe numbers."""
    x = batch(row, size=7, seed=seed)
    x[np.random.default_rng(seed).random(x.shape) < 0.5] = 0
    x[0] = batch(row, size=1, seed=seed + 1)
    x[3] = 0
    return SparseRows.from_dense(x.astype(dtype))


def frozen(rows: SparseRows) -> SparseRows:
    for array in (rows.starts, rows.columns, rows.values):
        array.flags.writeable = False
    return rows


def gradient_for(y, sparse: bool = False):
    dy = np.random.default_rng(9).standard_normal(y.shape)
    if sparse:
        dy[np.random.default_rng(8).random(y.shape) < 0.5] = 0
    return np.asfortranarray(dy)


def assert_same_gradients(one, other):
    assert set(one) == set(other)
    for name, gradient in one.items():
        np.testing.assert_allclose(
            np.asarray(gradient), np.asarray(other[name]), rtol=1e-9, atol=1e-9, err_msg=name
        )


# -- Dense and sparse agree ----------------------------------------------------------------------------------


@ROWS
@MODES
def test_a_batch_gives_the_same_dense_or_sparse(row, training):
    if row.own_meaning or (row.random and training):
        return
    x = sparse_batch(row)
    y, pullback = row.make().forward(x, training=training)
    expected, back = row.make().forward(x.to_dense(), training=training)
    np.testing.assert_allclose(as_array(y), as_array(expected), rtol=1e-9, atol=1e-12)
    dy = gradient_for(y)
    (dx, gradients), (dx_expected, expected_gradients) = pullback(dy), back(dy)
    at = x.rows, x.columns
    if isinstance(y, SparseRows) and not isinstance(expected, SparseRows):
        # What flows out of zeros of a dense y has no place in a sparse one; so only dy there counts.
        dx_expected, expected_gradients = back(y.with_values(dy[y.rows, y.columns]))
    np.testing.assert_allclose(dx.values, as_array(dx_expected)[at], rtol=1e-9, atol=1e-12)
    assert_same_gradients(gradients, expected_gradients)


@ROWS
@MODES
def test_dx_has_the_pattern_of_x(row, training):
    x = sparse_batch(row)
    y, pullback = row.make().forward(x, training=training)
    assert isinstance(y, SparseRows) or (type(y) is np.ndarray and y.flags.f_contiguous)
    for dy in (gradient_for(y), SparseRows.from_dense(gradient_for(y, sparse=True))):
        dx, _ = pullback(dy)
        assert isinstance(dx, SparseRows)
        assert dx.same_pattern(x)
        assert dx.values.shape == (x.nnz,)
    nothing, gradients = pullback(gradient_for(y), inputs=False)
    assert nothing is None
    assert_same_gradients(gradients, pullback(gradient_for(y))[1])


@ROWS
def test_the_pullback_is_the_derivative_at_active_entries(row):
    x, layer = sparse_batch(row), row.make()
    y, pullback = layer.forward(x)
    dy = gradient_for(y)
    values = x.values.copy()

    def scalar():
        return float((as_array(layer.forward(x.with_values(values))[0]) * dy).sum())

    expected = numeric_gradient(scalar, values)
    np.testing.assert_allclose(pullback(dy)[0].values, expected, rtol=1e-6, atol=1e-6)


@ROWS
@pytest.mark.parametrize("x_is_sparse", [False, True])
def test_a_gradient_gives_the_same_dense_or_sparse(row, x_is_sparse):
    x = sparse_batch(row)
    y, pullback = row.make().forward(x if x_is_sparse else x.to_dense())
    dy = gradient_for(y, sparse=True)
    expected, expected_gradients = pullback(dy)
    for form in (SparseRows.from_dense(dy), sp.csr_array(dy), gb.Matrix.from_dense(dy, missing_value=0.0)):
        dx, gradients = pullback(form)
        np.testing.assert_allclose(as_array(dx), as_array(expected), rtol=1e-9, atol=1e-12)
        assert_same_gradients(gradients, expected_gradients)


# -- Forms ---------------------------------------------------------------------------------------------------


def twice(x: SparseRows) -> sp.csr_array:
    """The same batch as CSR out of order and with every entry in two halves."""
    rows, columns = np.tile(x.rows, 2)[::-1], np.tile(x.columns, 2)[::-1]
    coo = sp.coo_array((np.tile(x.values / 2, 2)[::-1], (rows, columns)), shape=x.shape)
    order = np.argsort(rows, kind="stable")
    made = sp.csr_array((coo.data[order], columns[order], 2 * x.starts), shape=x.shape)
    assert not made.has_sorted_indices
    return made


@ROWS
def test_any_sparse_form_gives_the_same(row):
    x = sparse_batch(row)
    expected, pullback = row.make().forward(x)
    dx, _ = pullback(np.ones(expected.shape))
    scipy = x.to_scipy()
    assert scipy.indices.dtype == np.int64
    forms = [scipy, scipy.tocsc(), scipy.tocoo(), sp.csr_matrix(scipy), twice(x), x.to_graphblas()]
    forms += [SparseRows.of(scipy.T).to_graphblas().T, frozen(sparse_batch(row))]
    for form in forms:
        y, back = row.make().forward(form)
        assert type(y) is type(expected)
        np.testing.assert_array_equal(as_array(y), as_array(expected))
        np.testing.assert_array_equal(back(np.ones(y.shape))[0].to_dense(), dx.to_dense())


@ROWS
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
def test_any_dtype(row, dtype):
    whole = np.random.default_rng(0).integers(0, 2, (4, row.width))
    expected = as_array(row.make().forward(sp.csr_array(whole.astype(np.float64)))[0])
    y, _ = row.make().forward(sp.csr_array(whole.astype(dtype)))
    assert y.dtype in (np.float32, np.float64)
    np.testing.assert_allclose(as_array(y), expected, rtol=2e-6, atol=2e-6)


@ROWS
@MODES
def test_no_entries_at_all(row, training):
    x = SparseRows.from_dense(np.zeros((3, row.width)))
    y, pullback = row.make().forward(x, training=training)
    assert y.shape[0] == 3
    dx, gradients = pullback(np.ones(y.shape))
    assert dx.nnz == 0
    assert set(gradients) == set(row.make().parameters())


@ROWS
def test_arguments_are_left_alone(row):
    x = frozen(sparse_batch(row))
    kept = x.values.copy()
    y, pullback = row.make().forward(x)
    before = as_array(y).copy()
    dy = frozen(SparseRows.from_dense(gradient_for(y, sparse=True)))
    kept_dy = dy.values.copy()
    pullback(dy)
    np.testing.assert_array_equal(x.values, kept)
    np.testing.assert_array_equal(dy.values, kept_dy)
    np.testing.assert_array_equal(as_array(y), before)


@ROWS
@MODES
@pytest.mark.parametrize("extreme", [np.nan, np.inf, -np.inf, 1.7e308])
def test_extreme_numbers_do_not_warn(row, training, extreme):
    x = sparse_batch(row)
    values = x.values.copy()
    values[::2] = extreme
    y, pullback = row.make().forward(x.with_values(values), training=training)
    _, gradients = pullback(np.full(y.shape, extreme))
    for gradient in gradients.values():
        np.asarray(gradient)


# -- Of any size ---------------------------------------------------------------------------------------------

KEEP_SPARSE = [
    name
    for name, row in TABLE.items()
    if row.make().in_features is None and name not in {"Sigmoid", "Softplus"}
]


@pytest.mark.parametrize("name", [n for n in KEEP_SPARSE if n not in {"nested", "KWinners into an array"}])
@MODES
def test_features_cost_nothing(name, training):
    """2**59 features take as much memory as 2**30: what counts are the active entries."""
    peaks = []
    for features in (2**30, 2**59):
        rng = np.random.default_rng(0)
        columns = np.sort(rng.integers(0, features, (4, 30)), axis=1)
        x = SparseRows(np.arange(5) * 30, columns.ravel(), rng.standard_normal(120), (4, features))
        layer = TABLE[name].make()

        def step(layer=layer, x=x):
            y, pullback = layer.forward(x, training=training)
            assert isinstance(y, SparseRows)
            assert pullback(y)[0].same_pattern(x)

        step()
        peaks.append(peak_while(step)[0])
    assert max(peaks) < 100_000


@pytest.mark.parametrize("make", [layers.Sigmoid, layers.Softplus, lambda: layers.KWinners(3, dense=True)])
def test_what_makes_an_array_of_it_refuses_what_is_too_wide(make):
    x = gb.Matrix.from_coo([0, 1], [3, 2**59], [1.0, 2.0], nrows=2, ncols=2**60)
    with pytest.raises(ArgumentError, match=r"at most .*2 x 1152921504606846976"):
        make().forward(x)
