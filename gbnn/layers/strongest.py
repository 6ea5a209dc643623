"""The k largest entries of each row of a batch, exactly; of equal ones those with the smaller index.

`np.partition` of values runs several times faster than `np.argpartition`, and than a compiled heap: it finds
the k-th largest, and one comparison the entries that reach it. Only rows with ties there are looked at again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.rows import SparseRows

__all__ = ["strongest", "strongest_of_array", "strongest_of_rows"]

Array = np.ndarray[Any, Any]

_BLOCK = 2**20  # entries that are looked at together
_COLUMNS = 256  # columns copied together: both orders then stay in the nearest cache


def strongest(keys: Array, k: int) -> Array:
    """Return where the k largest of these numbers are, ascending; NaN before +∞, of equals the first.

    Parameters
    ----------
    keys : ndarray, shape (n,)
    k : int
        All where n is less.

    Returns
    -------
    ndarray of int64, shape (min(k, n),)

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.strongest import strongest
    >>> strongest(np.array([3.0, 1.0, 3.0, 2.0, 3.0]), 2)
    array([0, 2])
    """
    if keys.size <= k:
        return np.arange(keys.size)
    least = np.partition(keys, -k)[-k]
    at = np.flatnonzero(~(keys < least))
    if at.size > k:
        reached = keys[at]
        order = np.lexsort((at, -reached, ~np.isnan(reached)))
        at = np.sort(at[order[:k]])
    return at


def strongest_of_rows(x: SparseRows, k: int, factors: Array | None = None) -> Array:
    """Return whether each active entry is among the k strongest of its row: bool, shape (nnz,).

    `factors`, shape (nnz,), multiply the entries in the contest.

    Examples
    --------
    >>> from gbnn.layers.strongest import strongest_of_rows
    >>> from gbnn.rows import SparseRows
    >>> strongest_of_rows(SparseRows.from_dense([[0.0, 3.0, 1.0, 2.0], [1.0, 0.0, 0.0, 0.0]]), 2)
    array([ True, False,  True,  True])
    """
    keys = _keys(x.values, factors)
    keep = np.ones(x.nnz, dtype=np.bool_)
    for b in np.flatnonzero(np.diff(x.starts) > k):
        row = slice(x.starts[b], x.starts[b + 1])
        keep[row] = False
        keep[x.starts[b] + strongest(keys[row], k)] = True
    return keep


def strongest_of_array(x: Array, k: int, factors: Array | None = None) -> tuple[Array, Array, Array]:
    """Return where the k strongest entries of each row are, among those that are not 0.

    Parameters
    ----------
    x : ndarray, shape (batch, features), Fortran order
    k : int
    factors : ndarray, shape (features,), optional
        Multiply the entries in the contest.

    Returns
    -------
    starts : ndarray of int64, shape (batch + 1,)
    rows, columns : ndarray of int64, shape (at most batch k,)
        Row by row, columns ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.strongest import strongest_of_array
    >>> strongest_of_array(np.array([[3.0, 1.0, 2.0], [0.0, 0.0, -1.0]]), 2)
    (array([0, 2, 3]), array([0, 0, 1]), array([0, 2, 2]))
    """
    batch, features = x.shape
    step = max(16, _BLOCK // max(features, 1))
    blocks = [_places(_by_row(x[low : low + step]), k, factors) for low in range(0, batch, step)]
    rows = np.concatenate([rows + i * step for i, (rows, _) in enumerate(blocks)])
    columns = np.concatenate([columns for _, columns in blocks])
    starts = np.zeros(batch + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=batch), out=starts[1:])
    return starts, rows, columns


def _keys(x: Array, factors: Array | None) -> Array:
    if factors is None:
        return x
    with np.errstate(all="ignore"):  # what overflows is infinite, and wins
        keys: Array = x * factors.astype(x.dtype)
    return keys


def _by_row(x: Array) -> Array:
    """Return the batch in C order: a copy, where NumPy's own would go through memory once a row."""
    made = np.empty(x.shape, dtype=x.dtype)
    for low in range(0, x.shape[1], _COLUMNS):
        made[:, low : low + _COLUMNS] = x[:, low : low + _COLUMNS]
    return made


def _places(x: Array, k: int, factors: Array | None) -> tuple[Array, Array]:
    """Return rows and columns of the strongest of a block of rows in C order."""
    keys = _keys(x, factors)
    if k >= x.shape[1]:
        return _where(x)
    least = np.partition(keys, -k, axis=1)[:, -k]
    wins = ~(keys < least[:, None])
    # Where more than k reach the least of the winners, or zeros may be among them, as defined:
    odd = ~(least > 0) | (np.count_nonzero(wins, axis=1) != k)
    for b in np.flatnonzero(odd):
        candidates = np.flatnonzero(x[b])
        wins[b] = False
        wins[b, candidates[strongest(keys[b, candidates], k)]] = True
    return _where(wins)


def _where(flags: Array) -> tuple[Array, Array]:
    """Return `np.nonzero(flags)`, faster where few are."""
    rows, columns = np.divmod(np.flatnonzero(flags), max(flags.shape[1], 1))
    return rows, columns
