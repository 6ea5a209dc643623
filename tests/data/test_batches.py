from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbnn.data import Batches, batches
from gbnn.errors import ArgumentError, KindError, NonFiniteError
from gbnn.rows import SparseRows

REAL_DTYPES = [
    np.bool_,
    np.int8,
    np.uint8,
    np.int32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.longdouble,
]


def numbered(rows: int, features: int, dtype: type = np.float64) -> np.ndarray:
    """A matrix whose row i is i in every column: says which rows a batch holds, and that none is mixed up."""
    return np.repeat(np.arange(rows), features).reshape(rows, features).astype(dtype)


def rows_of(batches: Batches) -> list[int]:
    return [int(row[0]) for x, _ in batches for row in x]


@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("order", ["C", "F", "strided", "big-endian"])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("out", [np.float32, np.float64])
def test_every_dtype_and_order_gives_the_same_batches(dtype, order, shuffle, out):
    x = np.random.default_rng(3).integers(0, 2, (11, 5)).astype(dtype)
    given = {
        "C": x,
        "F": np.asfortranarray(x),
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "big-endian": x.astype(x.dtype.newbyteorder(">")),
    }[order]
    y = np.arange(11)
    seen = []
    for x_batch, y_batch in batches(given, y, batch_size=4, shuffle=shuffle, dtype=out):
        assert x_batch.flags.f_contiguous
        assert x_batch.dtype == out
        np.testing.assert_array_equal(x_batch, x[y_batch].astype(out))
        seen += y_batch.tolist()
    assert sorted(seen) == list(range(11))
    assert (seen == list(range(11))) is not shuffle


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float32, np.float64])
def test_sparse_rows_equal_dense_ones(form, kind, dtype):
    dense = (np.random.default_rng(0).random((17, 9)) < 0.3).astype(dtype)
    sparse = kind(dense).asformat(form)
    ways = (sparse, {}), (sparse, {"sparse": False}), (dense, {"sparse": True}), (dense, {})
    epochs = [batches(x, batch_size=5, **options) for x, options in ways]
    for (rows, _), (made_dense, _), (made_sparse, _), (expected, _) in zip(*epochs, strict=True):
        assert made_dense.flags.f_contiguous
        np.testing.assert_array_equal(made_dense, expected)
        for batch in (rows, made_sparse):
            assert isinstance(batch, SparseRows)
            np.testing.assert_array_equal(batch.to_dense(), expected)
        assert made_dense.dtype == rows.dtype == made_sparse.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f4", ">i2"])
def test_sparse_dtypes_that_scipy_cannot_compute_with(dtype):
    parts = (np.array([3, 5], dtype=dtype), np.array([0, 2]), np.array([0, 1, 2]))
    x = sp.csr_array(parts, shape=(2, 3))
    ((x_batch, y_batch),) = batches(x, x, shuffle=False)
    assert x_batch.to_dense().tolist() == y_batch.toarray().tolist() == [[3, 0, 0], [0, 0, 5]]


def test_duplicates_in_csr_add_up():
    doubled = sp.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2)
    )
    ((x, _),) = batches(doubled, shuffle=False)
    assert x.to_dense().tolist() == [[0.0, 3.0], [4.0, 0.0]]


def test_memmap_is_read_without_being_copied(tmp_path: Path):
    stored = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(20_000, 100))
    stored[:] = numbered(20_000, 100)
    stored.flush()
    opened = np.memmap(tmp_path / "x", dtype=np.float32, mode="r", shape=(20_000, 100))
    tracemalloc.start()
    epoch = batches(opened, batch_size=100)
    seen = sorted(rows_of(epoch))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == list(range(20_000))
    assert peak < opened.nbytes / 2


def test_no_order_of_memory_is_copied_whole():
    x = np.ones((20_000, 200), dtype=np.float32)
    for stored in (x, np.asfortranarray(x), x[:, ::2], x[::-1]):
        tracemalloc.start()
        for x_batch, _ in batches(stored, batch_size=100):
            assert x_batch.all()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < stored.nbytes / 10


def test_targets_keep_their_kind():
    x = numbered(6, 2)
    labels = np.arange(6, dtype=np.int16)
    ((_, y),) = batches(x, labels)
    assert y.dtype == np.int16
    many = sp.csr_array(np.tile(np.arange(6)[:, None], (1, 3)))
    for x_batch, y_batch in batches(x, many, batch_size=4):
        assert sp.issparse(y_batch)
        assert y_batch.format == "csr"
        np.testing.assert_array_equal(y_batch.toarray()[:, 0], x_batch[:, 0])
    for x_batch, y_batch in batches(x, many.tocoo(), batch_size=4):
        np.testing.assert_array_equal(y_batch.toarray()[:, 0], x_batch[:, 0])
    for x_batch, y_batch in batches(x, many.toarray(), batch_size=4):
        np.testing.assert_array_equal(y_batch, np.repeat(x_batch[:, :1], 3, axis=1))
    assert all(y is None for _, y in batches(x))


def test_epochs_differ_and_repeat_with_the_seed():
    x = numbered(50, 1)
    one, same, other = batches(x, seed=4), batches(x, seed=4), batches(x, seed=5)
    first, second = rows_of(one), rows_of(one)
    assert first != second
    assert [rows_of(same), rows_of(same)] == [first, second]
    assert rows_of(other) != first
    assert rows_of(batches(x)) == rows_of(batches(x, seed=0)) == rows_of(batches(x, seed=None))


def test_an_epoch_is_drawn_when_it_is_begun():
    x = numbered(50, 1)
    expected = batches(x, seed=1)
    orders = [rows_of(expected), rows_of(expected)]
    both = batches(x, seed=1)
    one, two = iter(both), iter(both)
    # Consumed in turns and the second first: the two must not share memory or order.
    taken = [[int(v) for x_batch, _ in epoch for v in x_batch[:, 0]] for epoch in (two, one)]
    assert taken[::-1] == orders


def test_batches_do_not_share_memory():
    x = numbered(8, 3)
    kept = [x_batch for x_batch, _ in batches(x, batch_size=2)]
    values = [x_batch.copy() for x_batch in kept]
    kept[0][:] = -1
    for x_batch, value in zip(kept[1:], values[1:], strict=True):
        np.testing.assert_array_equal(x_batch, value)
    assert x.min() == 0


def test_no_global_random_state_is_touched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    rows_of(batches(numbered(10, 1), seed=1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_generator_is_used_as_it_is_and_can_be_restored():
    rng = np.random.default_rng(9)
    epochs = batches(numbered(30, 1), seed=rng)
    assert epochs.generator is rng
    rows_of(epochs)
    state = rng.bit_generator.state
    second = rows_of(epochs)
    rng.bit_generator.state = state
    assert rows_of(epochs) == second


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 50), st.booleans())
def test_length_and_sizes(rows, size, drop_last):
    x = numbered(rows, 2)
    if drop_last and size > rows:
        with pytest.raises(ArgumentError, match="batch_size"):
            Batches(x, batch_size=size, drop_last=True)
        return
    epoch = Batches(x, batch_size=size, drop_last=drop_last)
    sizes = [len(x_batch) for x_batch, _ in epoch]
    assert len(sizes) == len(epoch)
    assert sum(sizes) == (rows - rows % size if drop_last else rows)
    assert all(n == size for n in sizes[:-1])
    assert epoch.rows == rows
    assert epoch.features == 2


def test_memory_over_csr_is_that_of_a_few_batches():
    rows, features, size = 20_000, 2_000, 50
    columns = np.sort((np.arange(rows)[:, None] * 7 + np.arange(4) * 500) % features)
    values = np.ones(4 * rows, dtype=np.float32)
    x = sp.csr_array((values, columns.ravel(), np.arange(rows + 1) * 4), shape=(rows, features))
    one = size * features * 4
    tracemalloc.start()
    epoch = batches(x, np.zeros(rows, dtype=np.int64), batch_size=size, sparse=False)
    total = 0.0
    for x_batch, _ in epoch:
        total += float(x_batch.sum(dtype=np.float64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 4 * rows
    assert peak < 5 * one  # all rows dense would be 400 batches


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.zeros(3), ArgumentError, "x: expected shape"),
        (np.zeros((0, 3)), ArgumentError, "at least one of each"),
        (np.zeros((3, 0)), ArgumentError, "at least one of each"),
        (np.zeros((2, 2, 2)), ArgumentError, "x: expected shape"),
        (np.zeros((2, 2), dtype=complex), KindError, "real numbers"),
        (np.array([["a"]]), KindError, "real numbers"),
        (np.array([[None]]), KindError, "real numbers"),
        ([[1.0], [1.0, 2.0]], KindError, "rectangular"),
        (sp.csr_array((0, 3)), ArgumentError, "at least one of each"),
        (sp.coo_array(np.ones(3)), ArgumentError, "2 dimensions"),
        (sp.csr_array(np.ones((2, 2), dtype=complex)), KindError, "real numbers"),
        (np.array([[1e39]]), ArgumentError, "fit in float32"),
        (np.array([[-1e39]]), ArgumentError, "fit in float32"),
        (sp.csr_array([[1e39]]), ArgumentError, "fit in float32"),
        (sp.csr_array((200, 2**40)), ArgumentError, "batch_size"),
    ],
)
def test_wrong_samples(x, error, words):
    with pytest.raises(error, match=words):
        Batches(x, sparse=False)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_non_finite_numbers_are_named_with_their_place(form, bad, dtype):
    x = np.zeros((4, 3), dtype=dtype)
    x[0, 0] = 5
    x[2, 1] = bad
    with pytest.raises(NonFiniteError, match=r"x: expected finite numbers, got .* at \[2, 1\]"):
        Batches(form(x))
    with pytest.raises(NonFiniteError, match=r"y: expected finite numbers, got .* at \[2, 1\]"):
        Batches(np.ones((4, 2)), form(x))


def test_large_float64_is_fine_as_float64():
    ((x, _),) = batches(np.array([[1e300, 1e308]]), dtype=np.float64)
    assert x.tolist() == [[1e300, 1e308]]


@pytest.mark.parametrize("indices", [[0, 7], [-1, 0]])
def test_sparse_indices_outside_the_shape(indices):
    x = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 3))
    x.indices[:] = indices  # as foreign code may leave it: SciPy checks only when it makes the matrix
    with pytest.raises(ArgumentError, match="x: expected indices within the shape"):
        Batches(x)


@pytest.mark.parametrize(
    ("y", "error"),
    [
        ([1, 2], ArgumentError),
        (5, ArgumentError),
        (np.zeros((3, 1, 1)), ArgumentError),
        (["a", "b", "c"], KindError),
        (sp.csr_array((2, 2)), ArgumentError),
        ([1.0, np.nan, 2.0], NonFiniteError),
    ],
)
def test_wrong_targets(y, error):
    with pytest.raises(error, match=r"^y: "):
        Batches(numbered(3, 2), y)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"batch_size": 0}, ArgumentError),
        ({"batch_size": 1.5}, KindError),
        ({"batch_size": True}, KindError),
        ({"seed": "x"}, KindError),
        ({"seed": -1}, ArgumentError),
        ({"dtype": np.int32}, KindError),
        ({"dtype": "nonsense"}, KindError),
    ],
)
def test_wrong_options_are_named(options, error):
    with pytest.raises(error, match=rf"^{next(iter(options))}: "):
        Batches(numbered(3, 2), **options)


@settings(deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 4))),
    st.integers(-1, 5),
    st.sampled_from([np.array, sp.csr_array]),
)
def test_any_matrix_gives_finite_batches_or_a_named_error(x, size, form):
    try:
        epoch = Batches(form(x), batch_size=size)
    except (ArgumentError, NonFiniteError) as error:
        if error.where not in ("x", "batch_size"):
            raise
        return
    joined = np.concatenate([x.to_dense() if isinstance(x, SparseRows) else x for x, _ in epoch])
    assert joined.shape == x.shape
    assert np.isfinite(joined).all()
