"""Batches of sparse rows: never dense, whatever the width."""

from __future__ import annotations

import graphblas as gb
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn.data import Batches
from gbnn.errors import ArgumentError, KindError, NonFiniteError
from gbnn.rows import SparseRows

WIDE = 2**60


def wide(rows: int, entries: int = 20, features: int = WIDE, dtype: type = np.float32) -> sp.csr_array:
    rng = np.random.default_rng(rows)
    columns = np.sort(rng.integers(0, features, (rows, entries)), axis=1).ravel()
    values = np.arange(rows * entries, dtype=dtype)
    return sp.csr_array((values, columns, np.arange(rows + 1) * entries), shape=(rows, features))


@st.composite
def matrices(draw: st.DrawFn) -> sp.csr_array:
    """CSR of any order, with duplicates and empty rows, of few or many columns."""
    rows, features = draw(st.integers(1, 6)), draw(st.sampled_from([1, 7, WIDE]))
    counts = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    columns = [draw(st.sampled_from([0, 3, 5, features - 1])) % features for _ in range(sum(counts))]
    values = draw(st.lists(st.integers(-3, 3), min_size=sum(counts), max_size=sum(counts)))
    dtype = draw(st.sampled_from([np.int8, np.float32, np.float64]))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return sp.csr_array(
        (np.array(values, dtype), np.array(columns, np.int64), indptr), shape=(rows, features)
    )


def entries(x: SparseRows) -> dict[tuple[int, int], float]:
    pairs = zip(x.rows.tolist(), x.columns.tolist(), strict=True)
    return dict(zip(pairs, x.values.tolist(), strict=True))


@settings(deadline=None)
@given(matrices(), st.integers(1, 7), st.booleans())
def test_batches_hold_the_rows_and_the_matrix_stays_as_it_is(x, size, shuffle):
    before = [array.copy() for array in (x.data, x.indices, x.indptr)]
    expected: dict[tuple[int, int], float] = {}
    for row in range(x.shape[0]):
        for e in range(x.indptr[row], x.indptr[row + 1]):
            place = row, int(x.indices[e])
            expected[place] = expected.get(place, 0.0) + float(x.data[e])
    found = {}
    for batch, rows in Batches(x, np.arange(x.shape[0]), size, shuffle=shuffle, seed=3):
        assert isinstance(batch, SparseRows)
        assert batch.shape == (len(rows), x.shape[1])
        assert batch.dtype == np.float32
        assert batch.starts.dtype == batch.columns.dtype == np.int64
        assert (np.diff(batch.columns)[np.diff(batch.rows) == 0] > 0).all()
        for (row, column), value in entries(batch).items():
            found[int(rows[row]), column] = value
    assert found == expected
    for array, copy in zip((x.data, x.indices, x.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_every_form_gives_the_same_batches():
    csr = wide(9, features=1000)
    csr.sum_duplicates()
    forms = [csr, csr.tocsc(), csr.tocoo(), SparseRows.of(csr), SparseRows.of(csr).to_graphblas()]
    forms.append(SparseRows.of(csr).to_graphblas().T.new().T)
    assert isinstance(forms[-1], type(gb.Matrix(int, 1, 1).T))
    for form in forms:
        for (x, _), (expected, _) in zip(
            Batches(form, batch_size=4), Batches(csr, batch_size=4), strict=True
        ):
            assert entries(x) == entries(expected)
    both = list(Batches(csr, SparseRows.of(csr), batch_size=4))
    for x, y in both:
        assert y.format == "csr"
        assert entries(SparseRows.of(y, dtype=np.float32)) == entries(x)


def test_what_was_changed_behind_scipys_back_is_sorted():
    x = sp.csr_array(np.eye(3)[:, [0, 1, 1]])
    assert x.has_canonical_format  # remembered
    x.indices[:] = [2, 1, 0]
    assert x.has_canonical_format
    ((batch, _),) = Batches(x, shuffle=False)
    assert (np.diff(batch.columns[batch.starts[1] :]) > 0).all()


def test_two_to_the_sixty_columns_cost_their_entries():
    def epoch(x: sp.csr_array) -> int:
        return peak_while(lambda: list(Batches(x, batch_size=100)))[0]

    peaks = [epoch(wide(400, features=n)) for n in (2**40, WIDE)]
    assert peaks[1] < 400 * 20 * 40
    assert peaks[1] == pytest.approx(peaks[0], rel=0.05)


def test_memory_of_an_epoch_does_not_grow_with_the_rows():
    def epoch(rows: int) -> int:
        batches = Batches(wide(rows, 40), np.zeros(rows, dtype=np.int64), 500, shuffle=False)
        return peak_while(lambda: sum(x.nnz for x, _ in batches))[0]

    assert epoch(20_000) == pytest.approx(epoch(2_000), rel=0.03)


def test_entries_that_add_up_beyond_float32_are_named():
    doubled = sp.csr_array((np.full(2, 3e38, np.float32), np.zeros(2, int), np.array([0, 2])), shape=(1, 2))
    with pytest.raises(NonFiniteError, match=r"x: .* at \[0, 0\]"):
        Batches(doubled)
    with pytest.raises(NonFiniteError, match=r"y: .*"):
        Batches(np.ones((1, 1)), sp.csr_array(np.array([[np.nan]])))


def test_sparse_is_a_bool():
    with pytest.raises(KindError, match="sparse"):
        Batches(np.eye(2), sparse=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="batch_size"):
        Batches(wide(3), sparse=False)


def test_a_batch_dense_or_sparse_is_the_same():
    x = wide(50, features=300, dtype=np.float64)
    for dtype in (np.float32, np.float64):
        pairs = zip(
            Batches(x, batch_size=7, dtype=dtype, seed=1),
            Batches(x, batch_size=7, dtype=dtype, seed=1, sparse=False),
            strict=True,
        )
        for (rows, _), (dense, _) in pairs:
            np.testing.assert_array_equal(rows.to_dense(), dense)
            assert dense.flags.f_contiguous
            assert dense.dtype == rows.dtype == dtype
