"""Compiled loops over candidate labels and over all labels, for `Scores`.

Candidates: entry c of a pattern is in row b where p_starts[b] <= c < p_starts[b + 1]; its label is number
local[c] of the labels that occur, whose edges are starts[k] up to starts[k + 1]. An edge's source is given as
a place in a row of `width` numbers: of the hidden array itself, or of the neurons active in the batch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit, prange

from gbnn.engine import kept_on_disk

__all__ = ["best_of_array", "best_of_rows", "distinct", "pull", "score", "table_for"]

_serial = partial(kept_on_disk, parallel=False, nogil=True)
_parallel = partial(kept_on_disk, parallel=True)


@_serial
def distinct(columns, table, place, found):  # type: ignore[no-untyped-def]
    """Write the different numbers into `found`, as they come, and which one each is into `place`; count them.

    `table` holds -1 everywhere; its length is a power of two and more than that of `columns`.
    """
    mask = table.size - 1
    count = 0
    for c in range(columns.size):
        number = columns[c]
        at = (np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
        slot = np.int64(at & np.uint64(mask))
        while table[slot] >= 0 and found[table[slot]] != number:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            found[count] = number
            count += 1
        place[c] = table[slot]
    return count


@njit
def _row(b, dense, h, h_starts, h_ranks, h_values, scratch):  # type: ignore[no-untyped-def]
    if dense:
        return h[b]
    for a in range(h_starts[b], h_starts[b + 1]):
        scratch[h_ranks[a]] = h_values[a]
    return scratch


@_serial
def score(  # type: ignore[no-untyped-def]
    dense, h, h_starts, h_ranks, h_values, width, p_starts, local, starts, sources, weights, bias, out
):
    """out[c] = bias + Σ over the edges of entry c's label of h·w."""
    scratch = np.zeros(width, dtype=out.dtype)
    for b in range(p_starts.size - 1):
        row = _row(b, dense, h, h_starts, h_ranks, h_values, scratch)
        for c in range(p_starts[b], p_starts[b + 1]):
            k = local[c]
            total = bias[k]
            for e in range(starts[k], starts[k + 1]):
                total += row[sources[e]] * weights[e]
            out[c] = total
        if not dense:
            for a in range(h_starts[b], h_starts[b + 1]):
                scratch[h_ranks[a]] = 0


@_serial
def pull(  # type: ignore[no-untyped-def]
    dense, h, h_starts, h_ranks, h_values, width, p_starts, local, starts, sources, weights, dy, inputs,
    d_weights, d_bias, d_h, d_values,
):  # fmt: skip
    """Write the derivatives of `score`, of h into one of the last two where they are asked for."""
    scratch = np.zeros(width, dtype=dy.dtype)
    back = np.zeros(width, dtype=dy.dtype)
    for b in range(p_starts.size - 1):
        row = _row(b, dense, h, h_starts, h_ranks, h_values, scratch)
        into = d_h[b] if dense and inputs else back
        for c in range(p_starts[b], p_starts[b + 1]):
            g = dy[c]
            if g != 0:
                k = local[c]
                d_bias[k] += g
                if inputs:
                    for e in range(starts[k], starts[k + 1]):
                        d_weights[e] += g * row[sources[e]]
                        into[sources[e]] += g * weights[e]
                else:
                    for e in range(starts[k], starts[k + 1]):
                        d_weights[e] += g * row[sources[e]]
        if not dense:
            for a in range(h_starts[b], h_starts[b + 1]):
                scratch[h_ranks[a]] = 0
                d_values[a] = back[h_ranks[a]]
            back[:] = 0


@njit
def _offer(total, label, labels, scores):  # type: ignore[no-untyped-def]
    """Put a label among the best, which descend; of equal ones the earlier label stays before."""
    place = scores.size - 1
    while place > 0 and not (scores[place - 1] >= total):
        scores[place], labels[place] = scores[place - 1], labels[place - 1]
        place -= 1
    scores[place], labels[place] = total, label


@njit
def _best_of_block(h, low, ids, starts, sources, weights, bias, count, labels, scores, lost):  # type: ignore[no-untyped-def]
    rows = h.shape[1]
    total = np.empty(rows, dtype=h.dtype)
    k = 0
    for j in range(count):
        for r in range(rows):
            total[r] = bias[j] if bias.size else 0
        if k < ids.size and ids[k] == j:
            for e in range(starts[k], starts[k + 1]):
                x, w = h[sources[e]], weights[e]
                for r in range(rows):
                    total[r] += x[r] * w
            k += 1
        for r in range(rows):
            if not (total[r] <= scores[low + r, -1]):
                if np.isnan(total[r]):
                    lost[low + r] = True
                else:
                    _offer(total[r], j, labels[low + r], scores[low + r])


@_parallel
def best_of_array(h, ids, starts, sources, weights, bias, count, labels, scores, lost):  # type: ignore[no-untyped-def]
    """Write the best labels of each row of h, and whether a score was NaN into `lost`.

    h is (blocks, hidden, rows of a block): the rows of a block share each label's edges. Edges are grouped
    by target.
    """
    for part in prange(h.shape[0]):
        low = part * h.shape[2]
        _best_of_block(h[part], low, ids, starts, sources, weights, bias, count, labels, scores, lost)


@njit
def _best_of_row(  # type: ignore[no-untyped-def]
    low, first, stop, h_values, targets, weights, bias, count, block, labels, scores
):
    lost = False
    cursor = first.copy()
    total = np.empty(min(block, count), dtype=scores.dtype)
    for begin in range(0, count, block):
        size = min(block, count - begin)
        for r in range(size):
            total[r] = bias[begin + r] if bias.size else 0
        for a in range(cursor.size):
            e, end, x = cursor[a], stop[a], h_values[low + a]
            while e < end and targets[e] < begin + size:
                total[targets[e] - begin] += x * weights[e]
                e += 1
            cursor[a] = e
        for r in range(size):
            if not (total[r] <= scores[-1]):
                if np.isnan(total[r]):
                    lost = True
                else:
                    _offer(total[r], begin + r, labels, scores)
    return lost


@_parallel
def best_of_rows(  # type: ignore[no-untyped-def]
    h_starts, first, stop, h_values, targets, weights, bias, count, block, labels, scores, lost
):
    """Do the same for sparse rows, along their active edges: a block of labels at a time."""
    for b in prange(h_starts.size - 1):
        low, high = h_starts[b], h_starts[b + 1]
        mine = low, first[low:high], stop[low:high], h_values
        lost[b] = _best_of_row(*mine, targets, weights, bias, count, block, labels[b], scores[b])


def table_for(count: int) -> Any:
    """Return an empty table for `distinct` of so many numbers."""
    return np.full(1 << (2 * max(count, 1)).bit_length(), -1, dtype=np.int64)
