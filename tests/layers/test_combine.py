"""Sums and columns side by side, of dense and sparse batches, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn.errors import ArgumentError
from gbnn.layers.combine import added, parted, side_by_side
from gbnn.layers.sparse import checked_gradient, spread
from gbnn.rows import SparseRows

NUMBERS = st.sampled_from([0.0, 0.0, 1.0, -1.0, 2.0])


@st.composite
def arrays(draw, rows, columns=None):
    columns = draw(st.integers(1, 5)) if columns is None else columns
    return np.array(draw(st.lists(NUMBERS, min_size=rows * columns, max_size=rows * columns))).reshape(
        rows, columns
    )


def as_array(x):
    return x.to_dense() if isinstance(x, SparseRows) else x


@settings(deadline=None)
@given(st.data())
def test_sum(data):
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    a, b = data.draw(arrays(rows, columns)), data.draw(arrays(rows, columns))
    one, other = SparseRows.from_dense(a), SparseRows.from_dense(b)
    both = added(one, other)
    np.testing.assert_array_equal(both.to_dense(), a + b)
    np.testing.assert_array_equal(both.rows, np.nonzero((a != 0) | (b != 0))[0])  # 1 + -1 is an entry
    np.testing.assert_array_equal(both.columns, np.nonzero((a != 0) | (b != 0))[1])
    for x, y in ((a, other), (one, b), (a, b)):
        mixed = added(x, y)
        assert type(mixed) is np.ndarray
        np.testing.assert_array_equal(mixed, a + b)
    np.testing.assert_array_equal(one.to_dense(), a)


def test_sum_of_wide_rows_costs_their_entries():
    rng = np.random.default_rng(0)
    one, other = (
        SparseRows(
            np.array([0, 40, 90]),
            np.concatenate([np.sort(rng.integers(0, 2**60, n)) for n in (40, 50)]),
            rng.random(90),
            (2, 2**60),
        )
        for _ in range(2)
    )
    peak, both = peak_while(lambda: added(one, other))
    assert both.nnz == 180
    assert both.shape == one.shape
    assert peak < 50_000
    np.testing.assert_array_equal(both.onto(one), one.values)
    same = added(one, one)
    assert same.columns is one.columns


def test_sum_does_not_change_its_terms_and_keeps_order():
    a, b = np.asfortranarray(np.ones((3, 2))), SparseRows.from_dense([[1.0, 0], [0, 0], [0, 2]])
    total = added(b, a)
    assert total.flags.f_contiguous
    np.testing.assert_array_equal(a, 1)
    np.testing.assert_array_equal(total, [[2, 1], [1, 1], [1, 3]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.7e308])
def test_sum_follows_ieee_without_warning(bad):
    a, b = SparseRows.from_dense([[bad, 1.0, 0]]), SparseRows.from_dense([[bad, 0.0, 1]])
    np.testing.assert_array_equal(added(a, b).values, [bad * 2 if bad != 1.7e308 else np.inf, 1, 1])
    added(a, np.full((1, 3), -bad))


@settings(deadline=None)
@given(st.data())
def test_side_by_side_and_back(data):
    rows = data.draw(st.integers(1, 4))
    parts = data.draw(st.lists(arrays(rows), min_size=1, max_size=4))
    flags = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)))
    given_parts = [SparseRows.from_dense(p) if f else p for p, f in zip(parts, flags, strict=True)]
    whole = side_by_side(given_parts)
    assert isinstance(whole, SparseRows) == any(flags)
    np.testing.assert_array_equal(as_array(whole), np.hstack(parts))
    if isinstance(whole, SparseRows):
        assert whole.starts.dtype == whole.columns.dtype == np.int64
        full = [np.ones_like(p) if not f else p != 0 for p, f in zip(parts, flags, strict=True)]
        np.testing.assert_array_equal(
            np.nonzero(np.hstack(full))[0], whole.rows
        )  # zeros of arrays are entries
        np.testing.assert_array_equal(np.nonzero(np.hstack(full))[1], whole.columns)
    again = parted(whole, [p.shape[1] for p in parts])
    for part, expected in zip(again, parts, strict=True):
        assert part.shape == expected.shape
        np.testing.assert_array_equal(as_array(part), expected)


def test_side_by_side_of_any_width():
    wide = SparseRows(np.array([0, 1]), np.array([2**59 - 1]), np.ones(1), (1, 2**59))
    both = side_by_side([wide, np.full((1, 2), 7.0), wide.take([0])][:2])
    assert both.shape == (1, 2**59 + 2)
    assert both.columns.tolist() == [2**59 - 1, 2**59, 2**59 + 1]
    assert side_by_side([wide, wide]).columns.tolist() == [2**59 - 1, 2**60 - 1]
    with pytest.raises(ArgumentError, match="features together"):
        side_by_side([wide, wide, np.ones((1, 1))])


def test_spread():
    keep = np.array([True, False, False, True])
    np.testing.assert_array_equal(spread(np.float32([1, 2]), keep), np.float32([1, 0, 0, 2]))
    assert spread(np.float32([1, 2]), keep).dtype == np.float32


def test_a_gradient_in_the_form_of_its_output():
    dense = np.array([[1.0, 0, 2], [0, 3, 0]])
    rows = SparseRows.from_dense(dense)
    pattern = SparseRows.from_dense([[1.0, 1, 0], [0, 0, 1]])
    for dy in (dense, rows, rows.to_scipy(), rows.to_graphblas()):
        made = checked_gradient("dy", dy, (2, 3), np.float32, pattern)
        assert made.columns is pattern.columns
        assert made.values.tolist() == [1, 0, 0]
        made = checked_gradient("dy", dy, (2, 3), np.float32)
        assert isinstance(made, SparseRows) == (dy is not dense)
        assert made.dtype == np.float32
        np.testing.assert_array_equal(as_array(made), dense)
        for given_pattern in (None, SparseRows.from_dense([[1.0, 1]])):
            with pytest.raises(ArgumentError, match=r"dy: expected .*, 2\)"):
                checked_gradient("dy", dy, (1, 2), np.float32, given_pattern)
