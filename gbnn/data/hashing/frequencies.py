"""`Frequencies`: in how many rows each column was seen, in memory of those seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["Frequencies", "look_up"]

Array = np.ndarray[Any, Any]

_u = np.uint64
_GOLDEN = _u(0x9E3779B97F4A7C15)
_EMPTY = -1

_compiled = partial(kept_on_disk, nogil=True)


@_compiled
def _slot(keys, column):  # type: ignore[no-untyped-def]
    """Return where a column is in the table, or the empty slot where it would be.

    Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4) and linear probing.
    """
    last = keys.size - 1
    at = np.int64((_u(column) * _GOLDEN) >> _u(32)) & last
    while keys[at] != column and keys[at] != _EMPTY:
        at = (at + 1) & last
    return at


@_compiled
def look_up(keys, counts, column):  # type: ignore[no-untyped-def]
    """Return a column's count, 0 for one never seen."""
    at = _slot(keys, column)
    return counts[at] if keys[at] == column else 0


@_compiled
def _add(keys, counts, columns, amounts, size):  # type: ignore[no-untyped-def]
    """Add amounts[k] (or 1, where there is one in all) to columns[k], until the table is half full.

    Returns how many were added, and the new number of columns in the table.
    """
    for k in range(columns.size):
        at = _slot(keys, columns[k])
        if keys[at] == _EMPTY:
            if 2 * size >= keys.size:
                return k, size
            keys[at] = columns[k]
            size += 1
        counts[at] += amounts[k if amounts.size > 1 else 0]
    return columns.size, size


class Frequencies:
    """How many rows hold each column: a table by open addressing, at most half full.

    Up to 64 bytes for each column seen (while it doubles, half as much again), whatever the number of columns
    there are.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.data.hashing.frequencies import Frequencies
    >>> seen = Frequencies()
    >>> seen.add(np.array([5, 2**59, 5]))
    >>> len(seen), seen.sorted()
    (2, (array([                 5, 576460752303423488]), array([2, 1])))
    """

    def __init__(self) -> None:
        self._size = 0
        self._make(1024)

    def _make(self, slots: int) -> None:
        self.keys = np.full(slots, _EMPTY, dtype=np.int64)
        self.counts = np.zeros(slots, dtype=np.int64)

    def __len__(self) -> int:
        return self._size

    def add(self, columns: Array, amounts: Array | None = None) -> None:
        """Count each column once more, or `amounts` times more; int64, shape (n,)."""
        if amounts is None:
            amounts = np.ones(1, dtype=np.int64)
        done = 0
        while True:
            more = amounts if amounts.size == 1 else amounts[done:]
            step, self._size = _add(self.keys, self.counts, columns[done:], more, self._size)
            done += step
            if done == columns.size:
                return
            held, amount = self.items()
            self._make(2 * self.keys.size)
            _add(self.keys, self.counts, held, amount, 0)

    def items(self) -> tuple[Array, Array]:
        """Return the columns seen, in no order, and their counts: int64, shape (len(self),) each."""
        held = self.keys != _EMPTY
        return self.keys[held], self.counts[held]

    def sorted(self) -> tuple[Array, Array]:
        """Return the columns seen, ascending, and their counts."""
        keys, counts = self.items()
        order = np.argsort(keys)
        return keys[order], counts[order]
