"""SparseRows against dense arrays: all methods, all forms, and what is refused."""

from __future__ import annotations

import graphblas as gb
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.rows import SparseRows, is_sparse, stored

WIDE = 2**60


def check(rows: SparseRows) -> None:
    """Everything the class promises of its arrays."""
    assert rows.starts.dtype == rows.columns.dtype == np.int64
    assert rows.values.dtype in (np.float32, np.float64)
    batch, features = rows.shape
    assert rows.starts.shape == (batch + 1,)
    assert rows.starts[0] == 0
    assert rows.starts[-1] == rows.nnz == rows.columns.size == rows.values.size
    assert (np.diff(rows.starts) >= 0).all()
    for b in range(batch):
        columns = rows.columns[rows.starts[b] : rows.starts[b + 1]]
        assert (np.diff(columns) > 0).all()
        assert ((columns >= 0) & (columns < features)).all()


@st.composite
def dense_batches(draw, rows=None, columns=None):
    rows = draw(st.integers(1, 5)) if rows is None else rows
    columns = draw(st.integers(1, 6)) if columns is None else columns
    numbers = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.0, 0.5])
    return np.array(draw(st.lists(numbers, min_size=rows * columns, max_size=rows * columns))).reshape(
        rows, columns
    )


def wide(dense: np.ndarray, spread: int = 2**57) -> SparseRows:
    """The same numbers, with column j at j * spread."""
    made = SparseRows.from_dense(dense)
    return SparseRows(made.starts, made.columns * spread, made.values, (len(dense), dense.shape[1] * spread))


# -- From and to other forms ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(dense_batches(), st.sampled_from([np.float32, np.float64]))
def test_every_form_and_back(dense, dtype):
    dense = dense.astype(dtype)
    rows = SparseRows.from_dense(dense)
    check(rows)
    csr = sp.csr_array(dense)
    graph = gb.Matrix.from_dense(dense, missing_value=0)
    transposed = gb.Matrix.from_dense(np.ascontiguousarray(dense.T), missing_value=0).T
    for form in (csr, csr.tocsc(), csr.tocoo(), sp.csr_matrix(csr), csr.tolil(), graph, transposed, rows):
        assert is_sparse(form)
        made = SparseRows.of(form)
        check(made)
        assert made.dtype == dtype
        assert made.same_pattern(rows)
        np.testing.assert_array_equal(made.values, rows.values)
    assert rows.to_dense().flags.f_contiguous
    np.testing.assert_array_equal(rows.to_dense(), dense)
    np.testing.assert_array_equal(rows.to_scipy().toarray(), dense)
    np.testing.assert_array_equal(rows.to_graphblas().to_dense(fill_value=0), dense)
    assert rows.to_scipy().has_canonical_format
    assert (rows.nnz, len(rows), rows.shape) == ((dense != 0).sum(), len(dense), dense.shape)
    assert rows.density == (dense != 0).mean()
    np.testing.assert_array_equal(rows.rows, np.nonzero(dense)[0])


@settings(deadline=None)
@given(dense_batches())
def test_wide_forms_and_back(dense):
    rows = wide(dense)
    for form in (rows.to_scipy(), rows.to_graphblas()):
        again = SparseRows.of(form)
        check(again)
        assert again.shape == rows.shape
        assert again.same_pattern(rows)
        np.testing.assert_array_equal(again.values, rows.values)


def test_other_forms_have_their_own_memory():
    rows = SparseRows.from_dense([[1.0, 0.0, 2.0]])
    scipy, graph = rows.to_scipy(), rows.to_graphblas()
    scipy.data[:] = 9
    scipy.indices[:] = 0
    graph[0, 0] = 7
    assert rows.values.tolist() == [1, 2]
    assert rows.columns.tolist() == [0, 2]


def test_what_it_was_made_of_stays_as_it_was():
    csr = sp.csr_array((np.array([1.0, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    rows = SparseRows.of(csr)
    check(rows)
    assert (rows.columns.tolist(), rows.values.tolist()) == ([0, 2], [2, 4])
    assert csr.indices.tolist() == [2, 0, 2]
    graph = gb.Matrix.from_coo([0, 1], [1, 0], [1.0, 2.0])
    SparseRows.of(graph)
    assert graph.isequal(gb.Matrix.from_coo([0, 1], [1, 0], [1.0, 2.0]))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(-3, 3)), max_size=20))
def test_unsorted_and_duplicate_entries_are_sorted_and_added_up(entries):
    entries.sort(key=lambda e: e[0])  # by row only, as CSR must be
    rows, columns, values = (np.array([e[i] for e in entries], dtype=np.int64) for i in range(3))
    starts = np.searchsorted(rows, np.arange(4))
    csr = sp.csr_array((values.astype(float), columns, starts), shape=(3, 5))
    expected = np.zeros((3, 5))
    np.add.at(expected, (rows, columns), values)
    made = SparseRows.of(csr)
    check(made)
    np.testing.assert_array_equal(made.to_dense(), expected)
    assert made.nnz == len(set(zip(rows.tolist(), columns.tolist(), strict=True)))  # a sum of 0 stays


def test_stored_zeros_stay():
    csr = sp.csr_array((np.zeros(2), np.array([0, 3]), np.array([0, 2, 2])), shape=(2, 4))
    assert SparseRows.of(csr).columns.tolist() == [0, 3]
    assert SparseRows.of(gb.Matrix.from_coo([0], [1], [0.0])).nnz == 1


def test_an_iso_matrix_of_graphblas():
    graph = gb.Matrix.from_coo([0, 1, 1], [2, 0, 1], 3.0, nrows=2, ncols=3)
    assert graph.ss.is_iso
    for form in (graph, graph.T.new().T):
        rows = SparseRows.of(form)
        check(rows)
        assert rows.values.tolist() == [3, 3, 3]
    empty = gb.Matrix(float, 2, 3)
    check(SparseRows.of(empty))
    assert SparseRows.of(empty).nnz == 0


@pytest.mark.parametrize("layout", ["hypercsr", "bitmapr", "bitmapc", "csc", "hypercsc"])
def test_any_layout_of_graphblas(layout):
    dense = np.array([[0.0, 2, 0], [0, 0, 0], [1, 0, 3]])
    graph = gb.Matrix.from_dense(dense, missing_value=0)
    graph.ss.config["format"] = "by_col" if layout.endswith("c") else "by_row"
    other = gb.Matrix.ss.import_any(**graph.ss.export(layout))
    rows = SparseRows.of(other)
    check(rows)
    np.testing.assert_array_equal(rows.to_dense(), dense)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint16, np.int64, np.uint64, np.float16, ">f8", ">i4", ">f4"]
)
def test_other_dtypes(dtype):
    dense = np.array([[0, 1], [1, 0]], dtype=dtype)
    kind = np.dtype(dtype).newbyteorder("=")
    expected = kind if kind in (np.float32, np.float64) else np.float32
    if kind == dtype and kind != np.float16:  # SciPy itself makes no other from an array
        rows = SparseRows.of(sp.csr_array(dense))
        check(rows)
        assert rows.dtype == expected
        np.testing.assert_array_equal(rows.to_dense(), dense)
    half = sp.csr_array(dense.astype(np.float64))
    half.data = half.data.astype(dtype)
    rows = SparseRows.of(half)
    check(rows)
    np.testing.assert_array_equal(rows.to_dense(), dense.astype(np.float64))
    if kind == dtype and kind != np.float16:
        rows = SparseRows.of(gb.Matrix.from_dense(dense, missing_value=dtype(0)))
        check(rows)
        np.testing.assert_array_equal(rows.to_dense(), dense)
    check(SparseRows.from_dense(dense))


def test_dtype_that_is_asked_for():
    csr = sp.csr_array(np.array([[1e300, 1.0]]))
    rows = SparseRows.of(csr, dtype=np.float32)  # too large becomes infinite, and shows; no warning
    assert rows.values.tolist() == [np.inf, 1]
    assert SparseRows.of(csr).astype(np.float64).values.tolist() == [1e300, 1]
    same = SparseRows.of(csr)
    assert same.astype(np.float64) is same
    assert SparseRows.of(same) is same
    for wrong in (int, "complex64", "nonsense", object):
        with pytest.raises(GbnnError):
            SparseRows.of(csr, dtype=wrong)


def test_nan_and_infinities_are_entries():
    dense = np.array([[np.nan, 0, np.inf, -np.inf]])
    for rows in (SparseRows.from_dense(dense), SparseRows.of(sp.csr_array(dense))):
        np.testing.assert_array_equal(rows.values, [np.nan, np.inf, -np.inf])
        np.testing.assert_array_equal(rows.to_dense(), dense)
    assert SparseRows.from_dense([[-0.0, 1]]).nnz == 1


# -- Others made of it ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(dense_batches(), st.data())
def test_take_as_numpy_does(dense, data):
    rows = SparseRows.from_dense(dense)
    picked = data.draw(st.lists(st.integers(-len(dense), len(dense) - 1), min_size=1, max_size=7))
    start, stop = data.draw(st.integers(0, len(dense))), data.draw(st.integers(0, len(dense)))
    for which in (picked, np.array(picked), slice(start, stop), slice(None, None, -1), dense[:, 0] > 0):
        made = rows.take(which)
        check(made)
        np.testing.assert_array_equal(made.to_dense(), dense[which])


@settings(deadline=None)
@given(dense_batches(), st.integers(0, 2**31))
def test_where(dense, seed):
    rows = wide(dense)
    keep = np.random.default_rng(seed).random(rows.nnz) < 0.5
    made = rows.where(keep)
    check(made)
    assert made.rows.tolist() == rows.rows[keep].tolist()
    assert made.columns.tolist() == rows.columns[keep].tolist()
    assert made.values.tolist() == rows.values[keep].tolist()


@settings(deadline=None)
@given(st.data())
def test_onto_another_pattern(data):
    a = data.draw(dense_batches())
    b = data.draw(dense_batches(*a.shape))
    for make in (SparseRows.from_dense, wide):
        one, other = make(a), make(b)
        np.testing.assert_array_equal(one.onto(other), a[np.nonzero(b)])
        assert one.onto(one) is one.values
        assert one.same_pattern(other) == ((a != 0) == (b != 0)).all()


def test_with_values_shares_the_pattern():
    rows = SparseRows.from_dense([[1.0, 0, 2.0]])
    made = rows.with_values(np.array([5.0, 6.0]))
    assert made.columns is rows.columns
    assert made.starts is rows.starts
    assert made.same_pattern(rows)
    assert stored(made).tolist() == [5, 6]
    assert stored([[1, 2]]).tolist() == [[1, 2]]


def test_patterns_that_differ():
    one = SparseRows.from_dense([[1.0, 0], [0, 0]])
    assert not one.same_pattern(SparseRows.from_dense([[0, 0], [1.0, 0]]))
    assert not one.same_pattern(SparseRows.from_dense([[1.0, 0, 0], [0, 0, 0]]))
    with pytest.raises(ArgumentError, match=r"rows: expected shape \(1, 2\)"):
        one.onto(SparseRows.from_dense([[1.0, 0]]))


def test_features_cost_nothing():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, WIDE, (20, 50)), axis=1)
    rows = SparseRows(np.arange(21) * 50, columns.ravel(), rng.random(1000), (20, WIDE))

    def use():
        again = SparseRows.of(SparseRows.of(rows.to_graphblas()).to_scipy())
        half = again.where(again.values > 0.5)
        assert again.onto(half).tolist() == half.values.tolist()
        return again.take(slice(3, 9)).nnz

    use()
    assert peak_while(use)[0] < 60 * rows.nbytes
    assert rows.nbytes == 21 * 8 + 1000 * 16
    assert repr(rows) == f"SparseRows(20 x {WIDE}, nnz=1000, float64)"
    assert 0 < rows.density < 1e-15


# -- What is refused -----------------------------------------------------------------------------------------


def csr(starts, columns, values=None, shape=(2, 3)):
    """A CSR matrix that SciPy did not look at."""
    made = sp.csr_array(shape)
    made.indptr, made.indices = np.array(starts), np.array(columns)
    made.data = np.ones(len(columns)) if values is None else np.asarray(values)
    return made


def with_lost_index():
    made = sp.coo_array((np.ones(2), (np.array([0, 1]), np.array([0, 2]))), shape=(2, 3))
    made.coords[1][1] = 3
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: csr([0, 1, 2], [0, 3]),
        lambda: csr([0, 1, 2], [0, -1]),
        lambda: csr([0, 1, 2], [2**40, 0]),
        lambda: csr([0, 2, 1], [0, 1]),
        lambda: csr([1, 1, 2], [0, 1]),
        lambda: csr([0, 1, 5], [0, 1]),
        lambda: csr([0, 1], [0]),
        lambda: csr([0, 1, 2], [0, 1], values=np.ones(3)[:1]),
        with_lost_index,
        lambda: sp.csr_array((0, 3)),
        lambda: sp.coo_array(np.ones(3)),
        lambda: sp.csr_array(np.eye(2, dtype=complex)),
        lambda: gb.Matrix.from_coo([0], [0], [1j]),
        lambda: gb.Matrix(gb.dtypes.register_anonymous(np.dtype("(2,)f8")), 2, 2),
        lambda: gb.Vector.from_dense([1.0]),
        lambda: np.eye(2),
        lambda: [[1.0]],
        lambda: None,
        lambda: "rows",
    ],
)
def test_what_makes_no_batch(make):
    with pytest.raises(GbnnError, match="my batch"):
        SparseRows.of(make(), where="my batch")


def test_more_features_than_there_may_be():
    made = sp.csr_array((np.ones(1), np.array([0]), np.array([0, 1])), shape=(1, 2**61))
    with pytest.raises(ArgumentError, match="features"):
        SparseRows.of(made)


@pytest.mark.parametrize(
    "array", [[], [[]], [1.0], np.ones((0, 2)), [["a"]], None, [[1], [1, 2]], np.ones((1, 1, 1))]
)
def test_arrays_that_make_no_batch(array):
    with pytest.raises(GbnnError, match="array"):
        SparseRows.from_dense(array)


def test_no_array_of_absurd_size():
    rows = SparseRows(np.array([0, 0]), np.zeros(0, dtype=np.int64), np.zeros(0), (1, 2**31 + 1))
    with pytest.raises(ArgumentError, match="at most 2"):
        rows.to_dense()


@pytest.mark.parametrize("rows", [[5], [-3], "a", [1.5], [[0]], 1, None])
def test_rows_that_are_not_there(rows):
    with pytest.raises(GbnnError):
        SparseRows.from_dense([[1.0], [2.0]]).take(rows)


def test_is_sparse():
    assert not any(is_sparse(x) for x in (np.eye(2), [[1]], None, gb.Vector(float, 3), KindError))
