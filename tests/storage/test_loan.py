"""Loans: no dangling array, no leak, no way to write, and none of reading that moves the arrays."""

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
from support.loans import DTYPES, addresses, full, int64, noise, parts

from gbnn import storage
from gbnn.errors import KindError

# -- Lifetime ------------------------------------------------------------------------------------------------


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
from gbnn.errors import GbnnError
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
    except GbnnError as error:
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
