"""Sparse outputs row by row: where the true labels are among them, sums and softmax of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.rows import SparseRows

__all__ = ["find", "first_best", "labelled", "maxima", "softmax", "standing_for", "sums"]

Array = np.ndarray[Any, Any]


def find(y: SparseRows, rows: Array, columns: Array) -> Array:
    """Return which entry of `y` is at each (row, column), or -1 where there is none; int64, shape (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.losses.by_row import find
    >>> from gbnn.rows import SparseRows
    >>> y = SparseRows.from_dense([[0.0, 5.0, 6.0], [7.0, 0.0, 0.0]])
    >>> find(y, np.array([0, 0, 1]), np.array([2, 0, 0]))
    array([ 1, -1,  2])
    """
    low, high = y.starts[rows].copy(), y.starts[rows + 1]
    end = high.copy()
    # All are halved together: as many rounds as the longest row asks for.
    while (open_ := low < high).any():
        middle = (low + high) // 2
        right = open_ & (y.columns[np.minimum(middle, max(y.nnz - 1, 0))] < columns)
        low = np.where(right, middle + 1, low)
        high = np.where(open_ & ~right, middle, high)
    at = np.minimum(low, max(y.nnz - 1, 0))
    found = low < end
    if y.nnz:
        found &= y.columns[at] == columns
    return np.where(found, at, -1)


def sums(y: SparseRows, values: Array) -> Array:
    """Return the sum of `values`, one an entry, over each row, in float64; 0 for a row without entries."""
    result = np.zeros(len(y))
    some = np.flatnonzero(np.diff(y.starts))
    if some.size:
        result[some] = np.add.reduceat(values, y.starts[some], dtype=np.float64)
    return result


def maxima(y: SparseRows) -> Array:
    """Return the largest value of each row, its dtype; 0 for a row without entries."""
    result = np.zeros(len(y), dtype=y.dtype)
    some = np.flatnonzero(np.diff(y.starts))
    if some.size:
        result[some] = np.maximum.reduceat(y.values, y.starts[some])
    return result


def first_best(y: SparseRows) -> Array:
    """Return the column of the largest value of each row, the first of equal ones; -1 for an empty row."""
    result = np.full(len(y), -1, dtype=np.int64)
    rows = y.rows
    # NaN counts as the largest, as it does for argmax.
    best = np.flatnonzero((y.values == maxima(y)[rows]) | np.isnan(y.values))
    result[rows[best[::-1]]] = y.columns[best[::-1]]
    return result


def standing_for(y: SparseRows, chance: Array | None) -> Array:
    """Return how many entries each one stands for, float64: 1, or one over the chance that it is there."""
    return np.ones(y.nnz) if chance is None else 1.0 / chance


def softmax(y: SparseRows, each: Array) -> tuple[Array, Array, Array, Array]:
    """Return what a softmax over each row's entries, each counted so many times, is made of.

    Returns
    -------
    peak : ndarray, shape (batch,)
        The largest of each row.
    shifted : ndarray, shape (nnz,)
        The values less that.
    exps : ndarray, shape (nnz,)
        ``each · exp(shifted)``, in the dtype of y.
    total : ndarray of float64, shape (batch,)
        Their sums; 1 for a row without entries.
    """
    peak = maxima(y)
    shifted = y.values - peak[y.rows]
    exps = np.exp(shifted) * each.astype(y.dtype)
    total = sums(y, exps)
    total[np.diff(y.starts) == 0] = 1.0
    return peak, shifted, exps, total


def labelled(target: Any) -> tuple[Array, Array, Array]:
    """Return rows, columns and sizes of the labels of a multi-label target, dense or CSR, that are not 0."""
    if sp.issparse(target):
        rows = np.repeat(np.arange(target.shape[0]), np.diff(target.indptr))
        columns, sizes = target.indices.astype(np.int64), target.data
    else:
        rows, columns = np.nonzero(target)
        sizes = target[rows, columns]
    some = sizes != 0
    return rows[some], columns[some], sizes[some].astype(np.float64)
