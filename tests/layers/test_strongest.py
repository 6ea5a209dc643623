"""The k strongest entries against their definition, in plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.layers.strongest import strongest, strongest_of_array, strongest_of_rows
from gbnn.rows import SparseRows

# Few different numbers, so that there are ties.
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 1e-30])


def definition(keys, k):
    """NaN first, then by size, then by place."""
    order = sorted(range(len(keys)), key=lambda i: (not np.isnan(keys[i]), -keys[i], i))
    return sorted(order[:k])


def definition_of_array(x, k, factors=None):
    winners = []
    for row in np.asarray(x):
        keys = row if factors is None else row * factors.astype(row.dtype)
        candidates = [i for i in range(len(row)) if row[i] != 0]
        winners.append([candidates[i] for i in definition([keys[c] for c in candidates], k)])
    return winners


def by_row(starts, rows, columns):
    assert starts.dtype == rows.dtype == columns.dtype == np.int64
    np.testing.assert_array_equal(rows, np.repeat(np.arange(starts.size - 1), np.diff(starts)))
    return [columns[a:b].tolist() for a, b in pairwise(starts)]


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=12), st.integers(1, 13))
@pytest.mark.filterwarnings("error")
def test_of_numbers(keys, k):
    for dtype in (np.float32, np.float64):
        assert strongest(np.array(keys, dtype=dtype), k).tolist() == definition(keys, k)


@settings(deadline=None)
@given(st.data())
def test_of_an_array(data):
    batch, features = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 7))
    numbers = data.draw(st.lists(NUMBERS, min_size=batch * features, max_size=batch * features))
    x = np.array(numbers).reshape((batch, features), order="F")
    k = data.draw(st.integers(1, 8))
    assert by_row(*strongest_of_array(x, k)) == definition_of_array(x, k)
    factors = np.array(
        data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=features, max_size=features))
    )
    assert by_row(*strongest_of_array(x, k, factors)) == definition_of_array(x, k, factors)


@settings(deadline=None)
@given(st.lists(st.lists(NUMBERS, max_size=9), min_size=1, max_size=5), st.integers(1, 10))
def test_of_rows(rows, k):
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    columns = np.concatenate([np.arange(len(row)) * 2**55 for row in rows]).astype(np.int64)
    x = SparseRows(starts, columns, np.array([n for row in rows for n in row]), (len(rows), 2**60))
    keep = strongest_of_rows(x, k)
    assert keep.dtype == np.bool_
    for b, row in enumerate(rows):
        assert np.flatnonzero(keep[starts[b] : starts[b + 1]]).tolist() == definition(row, k)
    assert (strongest_of_rows(x, k, np.ones(x.nnz)) == keep).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 15, 16, 17, 40])
def test_more_rows_and_columns_than_a_block(dtype, batch, monkeypatch):
    monkeypatch.setattr("gbnn.layers.strongest._BLOCK", 700 * 18)  # 18 rows at a time
    x = np.asfortranarray(np.random.default_rng(batch).standard_normal((batch, 700)), dtype=dtype)
    x[:, 40:600] = np.round(x[:, 40:600])  # zeros and ties
    factors = np.random.default_rng(1).uniform(0.5, 2, 700)
    for k in (1, 30, 300, 699, 700, 900):
        assert by_row(*strongest_of_array(x, k)) == definition_of_array(x, k)
        assert by_row(*strongest_of_array(x, k, factors)) == definition_of_array(x, k, factors)


def test_factors_that_overflow_do_not_warn():
    x = np.array([[3e38, 1.0, 2e38]], dtype=np.float32)
    assert by_row(*strongest_of_array(x, 1, np.array([1e20, 1.0, 1e20]))) == [[0]]
