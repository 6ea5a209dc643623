"""Loans and outputs: no copy, no dangling array, no leak, and the kernel they are made for."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
import weakref

import graphblas as gb
import numpy as np
import pytest
from graphblas import monoid, semiring
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import storage
from gbnn.errors import ArgumentError, GbnnError, KindError

few = settings(deadline=None, max_examples=40)

DTYPES = [np.float32, np.float64, np.bool_]
HUGE = 2**60


def full(rows=2, columns=3, dtype=np.float32):
    return np.asfortranarray(np.arange(rows * columns).reshape(rows, columns).astype(dtype))


def int64(*numbers):
    return np.array(numbers, dtype=np.int64)


def parts(dtype=np.float32):
    """Columns 1 and 4: entries (0, 1), (2, 1), (1, 4)."""
    return int64(1, 4), int64(0, 2, 3), int64(0, 2, 1), np.array([1, 0, 1], dtype=dtype)


def addresses(matrix):
    """Where GraphBLAS itself reads: the loan is taken back for a moment, which gives the pointers."""
    loan = matrix.T._parent
    came = loan._unpack()
    loan.pack()
    return came


def peak_while(function):
    """Bytes at most allocated above the level before, by NumPy and GraphBLAS alike; what it returned."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()


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


# -- Lifetime ------------------------------------------------------------------------------------------------


def noise():
    return [np.full(n, 77, dtype=np.float32) for n in (6, 6, 6, 1000, 100_000)]


def test_a_matrix_keeps_its_arrays_alive_and_lets_go_of_them():
    x, columns = full(), parts()
    alive = [weakref.ref(a) for a in (x, *columns)]
    matrices = storage.lend_full(x), storage.lend_columns(*columns, (3, 5))
    del x, columns
    gc.collect()
    kept = noise()
    assert [m.reduce_scalar().value for m in matrices] == [15.0, 2.0]
    assert all(ref() is not None for ref in alive)
    del matrices
    gc.collect()
    assert all(ref() is None for ref in alive)
    assert kept[0][0] == 77


def test_arrays_outlive_their_matrix():
    x, columns = full(), parts()
    before = [a.copy() for a in (x, *columns)]
    storage.lend_full(x).reduce_scalar().new()
    storage.lend_columns(*columns, (3, 5)).reduce_scalar().new()
    gc.collect()
    kept = noise()
    for array, was in zip((x, *columns), before, strict=True):
        np.testing.assert_array_equal(array, was)
        assert array.flags.owndata
        assert array.flags.writeable
    assert len(kept) == 5


def test_an_expression_keeps_the_loan():
    expression = semiring.plus_times(storage.lend_full(full(2, 3)) @ storage.lend_full(full(3, 2)))
    gc.collect()
    kept = noise()
    np.testing.assert_array_equal(expression.new().to_dense(), full(2, 3) @ full(3, 2))
    assert len(kept) == 5


def test_a_loan_survives_an_exception_that_passes():
    kept = []

    def fail():
        matrix = storage.lend_columns(*parts(), (3, 5))
        kept.append(matrix)
        out = storage.Output(2, 5, np.float32)
        out.matrix(monoid.plus) << semiring.plus_times(storage.lend_full(full(2, 4)) @ matrix)

    with pytest.raises(gb.exceptions.DimensionMismatch):
        fail()
    gc.collect()
    memory = noise()
    assert kept[0].reduce_scalar().value == 2.0
    assert len(memory) == 5


def test_one_array_may_be_lent_several_times():
    columns = parts()
    first, second = (storage.lend_columns(*columns, (3, 5)) for _ in range(2))
    del first
    gc.collect()
    assert second.reduce_scalar().value == 2.0


def test_ended_loans_leave_nothing_behind():
    x, columns = full(), parts()

    def lend(times):
        for _ in range(times):
            storage.lend_full(x).nvals  # noqa: B018
            storage.swap_values(storage.lend_columns(*columns, (3, 5)), columns[-1].copy())
            storage.Output(2, 3, np.float32).take()
            storage.Output(2, 3, np.float32)
        gc.collect()

    lend(10)
    tracemalloc.start()
    try:
        lend(100)
        before = tracemalloc.get_traced_memory()[0]
        lend(500)
        # A leaked header alone would be some hundred bytes each; Python's own caches move by a few bytes.
        assert tracemalloc.get_traced_memory()[0] - before < 500 * 100
    finally:
        tracemalloc.stop()


# -- Reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_way_of_reading_moves_the_arrays(dtype):
    x, columns, n = full(4, 4, dtype), parts(dtype), np.arange(4)
    many = (
        n,
        np.arange(5) * 4,
        np.tile(n, 4),
        np.ones(16, dtype=dtype),
    )  # every place: none too many to be full
    one = int64(0), int64(0, 2), int64(0, 2), np.ones(2, dtype=dtype)
    add, any_pair = monoid.lor if dtype is np.bool_ else monoid.plus, semiring.any_pair
    for matrix, arrays in (
        (storage.lend_full(x), [x]),
        (storage.lend_columns(*columns, (4, 5)), columns),
        (storage.lend_columns(*many, (4, 4)), many),
        (storage.lend_columns(*one, (4, 1)), one),
    ):
        plain = gb.Matrix(matrix.dtype, *matrix.shape)
        plain << matrix
        assert plain.isequal(matrix)
        for read in (
            lambda m: (str(m), m._repr_html_(), str(m.T), m.T._repr_html_()),
            lambda m: (m.to_coo(), m.to_csr(), m.to_csc(), m.to_dcsr(), m.to_dcsc(), m.to_edgelist()),
            lambda m: (m.to_dense(0), m.to_dicts(), m.diag(), m.get(0, 0), (0, 0) in m, list(m), m.nvals),
            lambda m: (m.new(), m.dup(), m.wait(), m[:, :].new(), m[1, :].new(), m[[0, 2], [0, 0]].new()),
            lambda m: (any_pair(m @ m.new().T).new(), any_pair(m.new().T @ m).new()),
            lambda m: (m.ewise_add(m, add).new(), m.ewise_mult(m, add).new(), m.select("tril").new()),
            lambda m: (
                m.reduce_rowwise(add).new(),
                m.reduce_columnwise(add).new(),
                m.apply("identity").new(),
            ),
            lambda m: (m.reposition(1, 1).new(), m.T.ss.export(), m.T.ss.serialize()),
        ):
            read(matrix)
            assert addresses(matrix) == [a.ctypes.data for a in arrays]
        assert plain.isequal(matrix)


def test_threads_read_one_loan_at_once():
    rng = np.random.default_rng(0)
    n, batch = 300, 16
    x = np.asfortranarray(rng.normal(size=(batch, n)))
    columns = np.sort(rng.choice(10 * n, n, replace=False))
    starts, rows = np.arange(n + 1) * 3, np.sort(rng.integers(n // 3, size=(n, 3)) * 3 + range(3)).ravel()
    values = rng.normal(size=rows.size)
    expected = np.add.reduceat(x[:, rows] * values, starts[:-1], axis=1)
    sparse_x = gb.Matrix.from_dense(x)
    sparse_x.ss.config["sparsity_control"] = "sparse"
    sparse_x.wait()
    wrong = []

    def work(barrier, dense, weights):
        barrier.wait()
        out = storage.Output(batch, 10 * n, np.float64)
        out.matrix(monoid.plus) << semiring.plus_times(dense @ weights)
        by_dense = out.take()[:, columns]
        by_sparse = semiring.plus_times(sparse_x @ weights).new().to_dense(0)[:, columns]
        if not (np.allclose(by_dense, expected) and np.allclose(by_sparse, expected)):
            wrong.append(threading.get_ident())

    for _ in range(20):
        weights = storage.lend_columns(columns, starts, rows, values, (n, 10 * n))
        weights.wait()  # for the product with a sparse operand
        arguments = threading.Barrier(4), storage.lend_full(x), weights
        workers = [threading.Thread(target=work, args=arguments) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert wrong == []


# -- Writing -------------------------------------------------------------------------------------------------

WRITES = {
    "<<": lambda m: m << gb.Matrix(m.dtype, *m.shape),
    "update": lambda m: m.update(gb.Matrix(m.dtype, *m.shape)),
    "accumulate": lambda m: m(monoid.plus) << gb.Matrix(m.dtype, *m.shape),
    "assign": lambda m: m.__setitem__((0, 0), 1.0),
    "delete": lambda m: m.__delitem__((0, 1)),
    "clear": lambda m: m.clear(),
    "resize": lambda m: m.resize(9, 9),
    "build": lambda m: m.build([0], [0], [1.0], clear=True),
    "setdiag": lambda m: m.setdiag(1.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_lent_matrix_cannot_be_written_to(write):
    x, columns = full(), parts()
    for matrix in (storage.lend_full(x), storage.lend_columns(*columns, (3, 5))):
        before = matrix.new()
        with pytest.raises((TypeError, AttributeError)):
            write(matrix)
        with pytest.raises(KindError, match="lent matrix: expected only reading"):
            write(matrix.T)
        assert matrix.isequal(before)


def test_what_is_written_behind_the_back_of_a_loan_is_detected_and_crashes_nothing():
    script = """
import gc
import numpy as np
from gbnn import storage
n = 2000
for write in (
    lambda m: m.ss.unpack(), lambda m: m.ss.config.__setitem__("format", "by_col"),
    lambda m: type(m).__base__.clear(m), lambda m: type(m).__base__.resize(m, 9, 9),
    lambda m: (type(m).__base__.__delitem__(m, (0, 0)), m.wait()),
):
    x = np.ones((n, 30), dtype=np.float32, order="F")
    write(storage.lend_full(x).T)
    del x
    i = np.arange(n)
    c, s, r, v = i.copy(), np.arange(n + 1), i.copy(), np.ones(n)
    lent = storage.lend_columns(c, s, r, v, (n, n))
    write(lent.T)
    try:
        storage.swap_values(lent, np.zeros(n))
    except storage.GbnnError as error:
        print(error)
    del lent, c, s, r, v
    gc.collect()
    noise = [np.ones(k) for k in (n, n, 30 * n, 10) for _ in range(10)]
kept = [storage.lend_full(np.ones((9, 9), order="F")), storage.Output(9, 9, np.float64)]
kept.append(kept)
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == [
        "storage: expected a lent matrix to be left as it was, got one written to by GraphBLAS"
    ] * 5 + ["alive"]
    assert done.stderr.count("gbnn.errors.GbnnError: storage") >= 4  # the full ones; not each writing moves x


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


def misaligned(array):
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)[1:]
    copy = raw.view(array.dtype).reshape(array.shape, order="F")
    copy[...] = array
    return copy


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


# -- Outputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (0, 3), (3, 0)])
def test_an_output_begins_with_its_fill_and_becomes_an_array(dtype, shape):
    fill = np.arange(shape[1]) % 2
    y = storage.Output(*shape, dtype, fill).take()
    np.testing.assert_array_equal(y, np.broadcast_to(fill, shape).astype(dtype))
    assert y.dtype == dtype
    assert y.flags.f_contiguous
    assert y.flags.owndata
    assert y.flags.writeable


def test_an_output_is_filled_in_place_and_handed_over_without_a_copy():
    x, w = np.ones((500, 300), dtype=np.float32, order="F"), parts()

    def compute():
        out = storage.Output(500, 1000, np.float32)
        out.matrix(monoid.plus) << semiring.plus_times(dense @ weights)
        return out.take()

    dense, weights = storage.lend_full(x), storage.lend_columns(*w, (300, 1000))
    compute()
    peak, y = peak_while(compute)
    assert y.sum() == 2 * 500
    assert peak < y.nbytes + 100_000


def test_an_output_of_one_value_becomes_a_whole_array():
    out = storage.Output(2, 3, np.float32)
    out.matrix[:, :] = 5.0
    assert out.matrix.ss.is_iso
    np.testing.assert_array_equal(out.take(), np.full((2, 3), 5.0, dtype=np.float32))


def test_an_output_never_taken_leaves_its_memory_to_its_matrix():
    matrix = storage.Output(2, 3, np.float32, 7.0).matrix
    gc.collect()
    kept = noise()
    assert matrix.reduce_scalar().value == 42.0
    assert len(kept) == 5


def test_an_output_whose_memory_was_replaced_gives_the_new():
    x, w = full(300, 2), full(2, 300)
    for _ in range(5):
        out = storage.Output(300, 300, np.float32, 1.0)
        out.matrix << semiring.plus_times(storage.lend_full(x) @ storage.lend_full(w))
        kept = noise()
        y = out.take()
        del out
        gc.collect()
        np.testing.assert_array_equal(y, x @ w)
        assert len(kept) == 5


def test_an_output_is_taken_once():
    out = storage.Output(2, 3, np.float32)
    out.take()
    with pytest.raises(
        GbnnError, match=r"^output: expected a full matrix, taken once, got one taken already"
    ):
        out.take()


def test_an_output_that_was_made_sparse_is_not_taken():
    out = storage.Output(2, 3, np.float32)
    out.matrix << gb.Matrix.from_coo([0], [0], [1.0], nrows=2, ncols=3)
    with pytest.raises(GbnnError, match="got one with 1 of 6 entries"):
        out.take()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": -1},
        {"columns": 2.0},
        {"rows": True},
        {"dtype": np.int32},
        {"dtype": "no such"},
        {"fill": np.zeros(4)},
        {"fill": "a"},
        {"fill": None},
    ],
)
def test_outputs_that_cannot_be(change):
    with pytest.raises(GbnnError, match=f"^{next(iter(change))}: "):
        storage.Output(**({"rows": 2, "columns": 3, "dtype": np.float32} | change))
