"""`Lookup`: which of the neurons that have edges a neuron is, whatever numbers they have up to 2**60."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["Lookup"]

Array = np.ndarray[Any, Any]


class Lookup:
    """Places in a sorted list of distinct numbers: two memory accesses each where they are spread evenly.

    The list is cut into about as many intervals of equal width as it has numbers, and where each begins is
    noted. What falls into one interval is searched by halving, so the worst case is that of a
    binary search. Where the numbers are nearly all there are, an interval is a single number.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
        Ascending, none twice, none negative.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.lookup import Lookup
    >>> Lookup(np.array([2, 5, 2**59])).find(np.array([5, 3, 2**59, 2**60 - 1, 0]))
    array([ 1, -1,  2, -1, -1])
    """

    __slots__ = ("_begins", "_ids", "_shift")

    def __init__(self, ids: Array) -> None:
        self._ids = ids
        top = int(ids[-1]) if ids.size else 0
        self._shift = max(0, top.bit_length() - max(ids.size, 1).bit_length())
        if top < 4 * ids.size:
            self._shift = 0
        kind = np.int32 if ids.size < 2**31 else np.int64
        self._begins = np.empty((top >> self._shift) + 2, dtype=kind)
        _begin(ids, self._shift, self._begins)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self._begins.nbytes

    def find(self, numbers: Array) -> Array:
        """Return the place of each number in the list, or -1 where it is not in it.

        Parameters
        ----------
        numbers : ndarray of int64, shape (k,)
            Not negative.

        Returns
        -------
        ndarray of int64, shape (k,)
        """
        places = np.empty(numbers.size, dtype=np.int64)
        _find(self._ids, self._shift, self._begins, numbers, places)
        return places


def _begin_(ids, shift, begins):  # type: ignore[no-untyped-def]
    """begins[b] = how many of the numbers lie in intervals before b."""
    interval = 0
    for k in range(ids.size):
        while interval <= ids[k] >> shift:
            begins[interval] = k
            interval += 1
    begins[interval:] = ids.size


def _find_(ids, shift, begins, numbers, places):  # type: ignore[no-untyped-def]
    last = begins.size - 2
    for k in range(numbers.size):
        number = numbers[k]
        interval = number >> shift
        places[k] = -1
        if interval <= last:
            low, high = begins[interval], begins[interval + 1]
            while high - low > 1:
                middle = (low + high) >> 1
                if ids[middle] <= number:
                    low = middle
                else:
                    high = middle
            if low < high and ids[low] == number:
                places[k] = low


_begin = kept_on_disk(_begin_, nogil=True)
_find = kept_on_disk(_find_, nogil=True)
