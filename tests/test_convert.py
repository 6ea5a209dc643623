"""`Weights` from and to coordinates, SciPy, arrays and GraphBLAS, and what makes none."""

from __future__ import annotations

import graphblas as gb
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.weights import (
    BIG,
    build,
    dense_of,
    equal,
    few,
    huge_shapes,
    model_of,
    models,
    shapes,
    some,
    views_fit,
)

from gbnn.errors import ArgumentError, KindError, NonFiniteError
from gbnn.weights import Weights, real_dtype


@few
@given(models(shapes | huge_shapes), st.sampled_from([np.float32, np.float64]))
def test_coordinates_go_in_and_come_out_sorted(layer, dtype):
    shape, model = layer
    weights = build(shape, model, dtype)
    assert model_of(weights) == model
    assert list(model_of(weights)) == sorted(model)
    assert (weights.nnz, weights.shape, weights.dtype) == (len(model), shape, dtype)
    assert weights.density == len(model) / (shape[0] * shape[1])
    equal(Weights.from_coo(*weights.to_coo(), shape, dtype=dtype), weights)
    views_fit(weights)


@few
@given(models(shapes | huge_shapes), st.sampled_from([np.float32, np.float64]))
def test_graphblas_and_back(layer, dtype):
    weights = build(*layer, dtype)
    equal(Weights.from_graphblas(weights.to_graphblas()), weights)
    equal(Weights.from_graphblas(weights.by_target), weights)
    equal(Weights.from_graphblas(weights.to_graphblas().T.new().T), weights)


FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@settings(few, max_examples=150)
@given(
    models(),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(FORMATS),
    st.sampled_from(["array", "matrix"]),
)
def test_scipy_and_back(layer, dtype, format, kind):  # noqa: A002
    shape, model = layer
    weights = build(shape, model, dtype)
    csr = weights.to_scipy()
    assert csr.has_canonical_format
    np.testing.assert_array_equal(csr.toarray(), dense_of(shape, model, dtype))
    given = getattr(sp, f"{format}_{kind}")(csr if kind == "array" else sp.csr_matrix(csr))
    back = Weights.from_scipy(given)
    np.testing.assert_array_equal(back.to_dense(), weights.to_dense())
    assert back.dtype == dtype


@few
@given(models(), st.floats(0, 1000, width=32), st.sampled_from([np.float32, np.float64]))
def test_dense_and_back(layer, threshold, dtype):
    shape, model = layer
    dense = dense_of(shape, model, dtype)
    weights = Weights.from_dense(dense, threshold=threshold)
    kept = np.where(np.abs(dense) > threshold, dense, 0)
    np.testing.assert_array_equal(weights.to_dense(), kept)
    assert weights.nnz == np.count_nonzero(kept)
    assert weights.dtype == dtype


def test_stored_zeros_are_edges():
    explicit = sp.csr_array(([0.0, 1.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert Weights.from_scipy(explicit).nnz == 2
    assert Weights.from_graphblas(gb.Matrix.from_coo([0], [1], [0.0], nrows=2, ncols=2)).nnz == 1


def test_what_is_not_float64_becomes_float32_unless_asked():
    assert Weights.from_scipy(sp.eye_array(2, dtype=np.int64)).dtype == np.float32
    assert Weights.from_scipy(sp.eye_array(2, dtype=bool)).dtype == np.float32
    assert Weights.from_dense([[1, 2]]).dtype == np.float32
    assert Weights.from_dense([[1.0]], dtype=np.float32).dtype == np.float32
    assert Weights.from_graphblas(gb.Matrix.from_coo([0], [0], [3], nrows=1, ncols=1)).dtype == np.float32
    assert Weights.from_scipy(sp.eye_array(2, dtype=np.float32), dtype="float64").dtype == np.float64


def test_one_number_serves_for_all_edges():
    weights = Weights.from_coo([0, 1], [1, 0], 0.5, (2, 2))
    assert model_of(weights) == {(0, 1): 0.5, (1, 0): 0.5}
    views_fit(weights)


def test_what_is_given_out_is_a_copy():
    weights = some()
    for part in weights.to_coo():
        part[:] = 0
    weights.to_scipy().data[:] = 0
    weights.to_scipy().indices[:] = 0
    weights.to_dense()[:] = 0
    weights.to_graphblas().clear()
    equal(weights, some())


def test_other_forms_refuse_what_would_not_fit_in_memory():
    wide = Weights.from_coo([0], [0], [1.0], (BIG, 2))
    with pytest.raises(ArgumentError, match="to_scipy: expected at most"):
        wide.to_scipy()
    with pytest.raises(ArgumentError, match="to_dense: expected at most"):
        wide.to_dense()
    assert Weights.from_coo([1], [BIG - 1], [1.0], (2, BIG)).to_scipy()[1, BIG - 1] == 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])  # the last only as float32
def test_values_that_are_not_finite_are_refused(bad):
    matrix = np.array([[1.0, 0.0], [bad, 2.0]])
    for make in (
        lambda: Weights.from_coo([0, 1], [0, 0], [1.0, bad], (2, 2)),
        lambda: Weights.from_coo([0, 1], [0, 0], bad, (2, 2)),
        lambda: Weights.from_scipy(sp.csr_array(matrix), dtype=np.float32),
        lambda: Weights.from_dense(matrix, dtype=np.float32),
        lambda: Weights.from_graphblas(gb.Matrix.from_coo([0], [0], [bad], nrows=1, ncols=1), dtype="f4"),
    ):
        with pytest.raises(NonFiniteError):
            make()


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Weights.from_coo([0, 0], [1, 1], [1, 2], (2, 2)), ArgumentError),
        (lambda: Weights.from_coo([0], [2], [1], (2, 2)), ArgumentError),
        (lambda: Weights.from_coo([0], [0], [1], (2, 0)), ArgumentError),
        (lambda: Weights.from_coo([0], [0], [1], (2, BIG + 1)), ArgumentError),
        (lambda: Weights.from_coo([0], [0], [1], (2, True)), KindError),
        (lambda: Weights.from_coo([0], [0], [1], None), ArgumentError),
        (lambda: Weights.from_coo([0], [0], [1, 2], (2, 2)), ArgumentError),
        (lambda: Weights.from_coo([0], [0], [[1]], (2, 2)), ArgumentError),
        (lambda: Weights.from_coo([0], [0], ["a"], (2, 2)), KindError),
        (lambda: Weights.from_coo([0], [0], [1j], (2, 2)), KindError),
        (lambda: Weights.from_coo([0], [0], None, (2, 2)), KindError),
        (lambda: Weights.from_coo([0], [0], [1], (2, 2), dtype=np.int32), KindError),
        (lambda: Weights.from_coo([0], [0], [1], (2, 2), dtype="none such"), KindError),
        (lambda: Weights.from_scipy(np.eye(2)), KindError),
        (lambda: Weights.from_scipy(sp.coo_array([1.0, 2.0])), KindError),
        (lambda: Weights.from_scipy(sp.csr_array((2, 2), dtype=complex)), KindError),
        (lambda: Weights.from_scipy(sp.coo_array(([1.0, 1.0], ([0, 0], [0, 0])))), ArgumentError),
        (lambda: Weights.from_scipy(sp.csr_array((0, 2))), ArgumentError),
        (lambda: Weights.from_dense([1.0]), ArgumentError),
        (lambda: Weights.from_dense(np.ones((2, 0))), ArgumentError),
        (lambda: Weights.from_dense([[1.0], [1.0, 2.0]]), KindError),
        (lambda: Weights.from_dense([["a"]]), KindError),
        (lambda: Weights.from_dense(sp.eye_array(2)), KindError),
        (lambda: Weights.from_dense([[1.0]], threshold=np.nan), ArgumentError),
        (lambda: Weights.from_dense([[1.0]], threshold="1"), KindError),
        (lambda: Weights.from_graphblas(np.eye(2)), KindError),
        (lambda: Weights.from_graphblas(gb.Matrix(float, 0, 2)), ArgumentError),
        (lambda: Weights.from_graphblas(gb.Matrix("FC64", 2, 2)), KindError),
        (lambda: Weights(some().edges, np.zeros(2)), ArgumentError),
        (lambda: Weights(some().edges, np.zeros(3, dtype=int)), KindError),
        (lambda: Weights(some().edges, [0.0, 0.0, 0.0]), KindError),
        (lambda: some().astype(int), KindError),
    ],
)
def test_what_makes_no_weights_is_refused(make, error):
    with pytest.raises(error):
        make()


SWAPPED = np.dtype(np.float32).newbyteorder()


@pytest.mark.parametrize("dtype", [np.float16, np.int32, bool, object, "f4, f4", SWAPPED, None, 3])
def test_only_two_dtypes_are_real(dtype):
    assert real_dtype("here", "float32") == np.float32
    assert real_dtype("here", float) == np.float64
    with pytest.raises(KindError, match=r"^here: expected float32 or float64"):
        real_dtype("here", dtype)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.bsr_array])
@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("indptr", -1, 10**8),
        ("indptr", 3, 10**8),
        ("indptr", 0, -(10**6)),
        ("indices", 3, 10**6),
        ("indices", 3, -1),
    ],
)
def test_a_broken_compressed_matrix_is_refused_and_not_followed(kind, name, place, value):
    matrix = kind(np.eye(10))
    getattr(matrix, name)[place] = value
    with pytest.raises(ArgumentError, match="matrix: expected"):
        Weights.from_scipy(matrix)
