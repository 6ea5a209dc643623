"""Lending: no copy, nothing moved by reading, other values, and what cannot be lent."""

from __future__ import annotations

import weakref

import graphblas as gb
import numpy as np
import pytest
from graphblas import monoid, semiring
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loans import DTYPES, HUGE, addresses, full, int64, misaligned, parts
from support.memory import peak_while

from gbnn import storage
from gbnn.errors import ArgumentError, GbnnError, KindError

few = settings(deadline=None, max_examples=40)


# -- No copy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_graphblas_reads_the_arrays_themselves(dtype):
    x, columns = full(dtype=dtype), parts(dtype)
    assert addresses(storage.lend_full(x)) == [x.ctypes.data]
    assert addresses(storage.lend_columns(*columns, (3, 5))) == [a.ctypes.data for a in columns]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_lent_matrix_equals_its_array(dtype):
    x = full(dtype=dtype)
    np.testing.assert_array_equal(storage.lend_full(x).to_dense(), x)
    np.testing.assert_array_equal(
        storage.lend_columns(*parts(dtype), (3, 5)).to_dense(0),
        np.array([[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], dtype=dtype),
    )


def test_views_of_larger_arrays_are_lent_in_place():
    wide = full(4, 6)
    matrix = storage.lend_full(wide[:, 2:5])
    assert addresses(matrix) == [wide.ctypes.data + 2 * 4 * 4]
    by_row = np.ones((5, 4), dtype=np.float32)
    assert addresses(storage.lend_full(by_row.T)) == [by_row.ctypes.data]


def test_new_values_are_seen():
    x, (c, s, r, v) = full(), parts()
    dense, sparse = storage.lend_full(x), storage.lend_columns(c, s, r, v, (3, 5))
    x[1, 2], v[1] = 50.0, 60.0
    assert dense[1, 2].value == 50.0
    assert sparse[2, 1].value == 60.0


def test_lending_allocates_next_to_nothing():
    x = np.zeros((1000, 1000), dtype=np.float32, order="F")
    n = 100_000
    columns = np.arange(n), np.arange(n + 1), np.arange(n), np.ones(n)
    storage.lend_full(full())
    peak, _ = peak_while(lambda: (storage.lend_full(x), storage.lend_columns(*columns, (HUGE, HUGE))))
    assert peak < 20_000


@few
@given(st.data())
def test_columns_hold_any_structure(data):
    shape = data.draw(st.sampled_from([(1, 1), (3, 4), (HUGE, 2), (1, HUGE), (HUGE, HUGE)]))
    places = st.tuples(*(st.integers(0, n - 1) | st.sampled_from([0, n - 1]) for n in shape))
    edges = sorted(data.draw(st.sets(places, max_size=8)), key=lambda edge: edge[::-1])
    rows, columns = (int64(*side) for side in (zip(*edges, strict=True) if edges else ((), ())))
    values = np.arange(1.0, len(edges) + 1)
    ids, begin = np.unique(columns, return_index=True)
    starts = np.append(begin, len(edges)).astype(np.int64)
    matrix = storage.lend_columns(ids, starts, rows, values, shape)
    assert matrix.shape == shape
    got = {(int(i), int(j)): v for i, j, v in zip(*matrix.to_coo(), strict=True)}
    assert got == dict(zip(edges, values, strict=True))


def test_equal_values_stay_separate():
    c, s, r, v = parts(np.float64)
    v[:] = 2.0
    matrix = storage.lend_columns(c, s, r, v, (3, 5))
    assert matrix.reduce_scalar().value == 6.0
    v[0] = 5.0
    assert matrix.reduce_scalar().value == 9.0


def test_one_by_one():
    x, w = (
        np.full((1, 1), 3.0),
        storage.lend_columns(int64(0), int64(0, 1), int64(0), np.array([7.0]), (1, 1)),
    )
    out = storage.Output(1, 1, np.float64, 0.5)
    out.matrix(monoid.plus) << semiring.plus_times(storage.lend_full(x) @ w)
    assert out.take() == [[21.5]]


# -- Other values --------------------------------------------------------------------------------------------


def test_values_are_swapped_without_a_look_at_the_indices():
    c, s, r, v = parts()
    matrix = storage.lend_columns(c, s, r, v, (3, 5))
    new = np.array([4.0, 5.0, 6.0], dtype=np.float32)
    peak, _ = peak_while(lambda: storage.swap_values(matrix, new))
    assert addresses(matrix) == [a.ctypes.data for a in (c, s, r, new)]
    assert matrix.reduce_scalar().value == 15.0
    assert peak < 10_000
    new[0] = 0.0
    v[0] = 100.0
    assert matrix.reduce_scalar().value == 11.0


def test_swapped_values_are_let_go():
    c, s, r, v = parts()
    old = weakref.ref(v)
    matrix = storage.lend_columns(c, s, r, v, (3, 5))
    storage.swap_values(matrix, v.copy())
    del v
    assert old() is None


def test_an_empty_matrix_takes_its_empty_values():
    empty = np.empty(0)
    matrix = storage.lend_columns(int64(), int64(0), int64(), empty, (HUGE, HUGE))
    storage.swap_values(matrix, empty.copy())
    assert (matrix.nvals, matrix.shape) == (0, (HUGE, HUGE))


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(2, dtype=np.float32),
        np.zeros((3, 1), dtype=np.float32),
        np.zeros(3),
        np.zeros(6, dtype=np.float32)[::2],
        [0.0, 0.0, 0.0],
    ],
)
def test_values_that_do_not_fit_change_nothing(values):
    matrix = storage.lend_columns(*parts(), (3, 5))
    with pytest.raises(GbnnError, match=r"^values: "):
        storage.swap_values(matrix, values)
    assert matrix.reduce_scalar().value == 2.0


@pytest.mark.parametrize("matrix", [gb.Matrix(gb.dtypes.FP32, 3, 5), storage.lend_full(full()), None])
def test_only_lent_columns_take_other_values(matrix):
    with pytest.raises(ArgumentError, match=r"^matrix: expected a matrix from lend_columns"):
        storage.swap_values(matrix, np.zeros(3, dtype=np.float32))


# -- Bad arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.ones((2, 3), dtype=np.float32),  # by row
        full(4, 4)[::2],
        np.ones(3, dtype=np.float32),
        np.ones((0, 3), dtype=np.float32),
        np.ones((2, 2, 2), dtype=np.float32, order="F"),
        np.ones((2, 1), dtype=np.int64),
        np.ones((2, 1), dtype=np.float16),
        np.ones((2, 1), dtype=np.dtype(np.float32).newbyteorder()),
        np.ones((2, 1), dtype=object),
        misaligned(full()),
        [[1.0]],
        None,
    ],
)
def test_full_matrices_that_cannot_be_lent(array):
    with pytest.raises(GbnnError):
        storage.lend_full(array)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"columns": int64(1)}, ArgumentError),
        ({"columns": int64(1, 5)}, ArgumentError),
        ({"columns": int64(-1, 4)}, ArgumentError),
        ({"columns": int64()}, ArgumentError),
        ({"columns": np.array([1, 4], dtype=np.int32)}, ArgumentError),
        ({"columns": [1, 4]}, KindError),
        ({"starts": int64(0, 2, 4)}, ArgumentError),
        ({"starts": int64(1, 2, 3)}, ArgumentError),
        ({"starts": int64()}, ArgumentError),
        ({"rows": int64(0, 2)}, ArgumentError),
        ({"rows": int64(0, 0, 2, 2, 1, 1)[::2]}, ArgumentError),
        ({"rows": np.array([0.0, 2.0, 1.0])}, ArgumentError),
        ({"values": np.zeros(2)}, ArgumentError),
        ({"values": np.zeros((3, 1))}, ArgumentError),
        ({"values": np.zeros(6)[::2]}, ArgumentError),
        ({"values": np.zeros(3, dtype=np.int64)}, ArgumentError),
        ({"values": misaligned(np.zeros(3))}, ArgumentError),
        ({"shape": (0, 5)}, ArgumentError),
        ({"shape": (3, 2**60 + 1)}, ArgumentError),
        ({"shape": (3.0, 5)}, KindError),
    ],
)
def test_columns_that_cannot_be_lent(change, error):
    columns, starts, rows, values = parts()
    arguments = {"columns": columns, "starts": starts, "rows": rows, "values": values, "shape": (3, 5)}
    with pytest.raises(error):
        storage.lend_columns(**(arguments | change))
