"""Batches added up and set side by side, dense or sparse: what branches need."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from gbnn.edges import MAX_FEATURES
from gbnn.errors import ArgumentError
from gbnn.layers.layer import Activations, Array
from gbnn.rows import SparseRows

__all__ = ["added", "parted", "side_by_side"]


def added(a: Activations, b: Activations) -> Activations:
    """Return the sum of two batches of one shape and dtype: sparse only where both are.

    Of sparse ones, an entry is active where it is in either, also where the sum is 0.

    Examples
    --------
    >>> from gbnn.layers.combine import added
    >>> from gbnn.rows import SparseRows
    >>> a, b = SparseRows.from_dense([[1.0, 2.0, 0.0]]), SparseRows.from_dense([[0.0, -2.0, 3.0]])
    >>> added(a, b).columns, added(a, b).values
    (array([0, 1, 2]), array([1., 0., 3.]))
    """
    with np.errstate(all="ignore"):  # training itself looks for what is not finite
        if isinstance(a, SparseRows) and isinstance(b, SparseRows):
            if a.same_pattern(b):
                return a.with_values(a.values + b.values)
            # GraphBLAS merges in one pass, and keeps sums that are 0 (SciPy drops them).
            return SparseRows.of(a.to_graphblas().ewise_add(b.to_graphblas(), "plus").new(), dtype=a.dtype)
        if isinstance(a, SparseRows):
            a, b = b, a
        if not isinstance(b, SparseRows):
            return a + b
        total: Array = np.array(a, order="F")
        total[b.rows, b.columns] += b.values  # no entry is there twice
        return total


def side_by_side(parts: list[Activations]) -> Activations:
    """Return batches with their columns joined; sparse where any is: all entries of a dense one are active.

    Raises ArgumentError beyond 2**60 columns.

    Examples
    --------
    >>> from gbnn.layers.combine import side_by_side
    >>> from gbnn.rows import SparseRows
    >>> side_by_side([SparseRows.from_dense([[0.0, 2.0]]), SparseRows.from_dense([[3.0]])]).to_dense()
    array([[0., 2., 3.]])
    """
    arrays = [part for part in parts if not isinstance(part, SparseRows)]
    if len(arrays) == len(parts):
        return np.asfortranarray(np.concatenate(arrays, axis=1))
    starts = _starts(parts)
    if starts[-1] > MAX_FEATURES:
        raise ArgumentError("Concatenate.forward", f"at most {MAX_FEATURES} features together", starts[-1])
    rows = [part if isinstance(part, SparseRows) else _full(part) for part in parts]
    batch = rows[0].shape[0]
    sizes = np.array([np.diff(part.starts) for part in rows])
    ends = np.zeros(batch + 1, dtype=np.int64)
    np.cumsum(sizes.sum(axis=0), out=ends[1:])
    columns = np.empty(ends[-1], dtype=np.int64)
    values = np.empty(ends[-1], dtype=np.result_type(*(part.dtype for part in rows)))
    before = ends[:-1].copy()  # where this part's entries of each row begin
    for part, start, size in zip(rows, starts, sizes, strict=False):
        at = np.repeat(before - part.starts[:-1], size) + np.arange(part.nnz)
        columns[at] = part.columns + start
        values[at] = part.values
        before += size
    return SparseRows(ends, columns, values, (batch, starts[-1]))


def parted(whole: Activations, widths: list[int]) -> list[Activations]:
    """Return the columns of a batch as batches of these widths: `side_by_side` undone.

    Examples
    --------
    >>> from gbnn.layers.combine import parted
    >>> from gbnn.rows import SparseRows
    >>> parted(SparseRows.from_dense([[0.0, 2.0, 3.0]]), [2, 1])
    [SparseRows(1 x 2, nnz=1, float64), SparseRows(1 x 1, nnz=1, float64)]
    """
    bounds = list(accumulate(widths, initial=0))
    if not isinstance(whole, SparseRows):
        return [whole[:, low:high] for low, high in pairwise(bounds)]
    made: list[Activations] = []
    for low, high in pairwise(bounds):
        part = whole.where((whole.columns >= low) & (whole.columns < high))
        made.append(SparseRows(part.starts, part.columns - low, part.values, (len(whole), high - low)))
    return made


def _starts(parts: list[Activations]) -> list[int]:
    """Return the first column of each part, and the number of all: Python's integers do not overflow."""
    return list(accumulate((part.shape[1] for part in parts), initial=0))


def _full(array: Array) -> SparseRows:
    """Return a batch with every entry active, zeros too."""
    batch, features = array.shape
    starts = np.arange(batch + 1, dtype=np.int64) * features
    return SparseRows(starts, np.tile(np.arange(features), batch), array.ravel(), (batch, features))
