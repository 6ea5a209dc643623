"""Compiled loop that sorts each row by column and adds up what shares a column."""

from __future__ import annotations

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["add_up"]

_FEW = 24
"""Rows up to this long are sorted by insertion."""


def _add_up(stops, columns, values, ends):  # type: ignore[no-untyped-def]
    """Sort and merge in place; row r then holds what lies from ends[r - 1] to ends[r].

    Equal columns are added in the order they came (both sorts are stable), so the sums are the same
    everywhere.
    """
    begin = filled = 0
    for row in range(stops.size):
        stop = stops[row]
        if stop - begin <= _FEW:
            for k in range(begin + 1, stop):
                column, value = columns[k], values[k]
                j = k
                while j > begin and columns[j - 1] > column:
                    columns[j], values[j] = columns[j - 1], values[j - 1]
                    j -= 1
                columns[j], values[j] = column, value
        else:
            order = np.argsort(columns[begin:stop], kind="mergesort")
            columns[begin:stop] = columns[begin:stop][order]
            values[begin:stop] = values[begin:stop][order]
        first = filled
        for k in range(begin, stop):
            if filled > first and columns[filled - 1] == columns[k]:
                values[filled - 1] += values[k]
            else:
                columns[filled], values[filled] = columns[k], values[k]
                filled += 1
        ends[row] = filled
        begin = stop


add_up = kept_on_disk(_add_up, nogil=True)
