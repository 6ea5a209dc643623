"""Compiled loops over active edges: those that leave an active entry of a batch of sparse rows.

Entry p of the batch is in row b where x_starts[b] <= p < x_starts[b + 1]. Its neuron is number found[p] among
the active ones, or -1 where it has no edges; its edges are e_starts[found[p]] up to e_starts[found[p] + 1].
Active edges are numbered by entry, then by edge: those of entry p begin at number at[p]. The target of edge e
is column targets[e] of the output, and number ranks[e] of those that can be reached.

`acc` and `marks` are scratch, a row for each thread: one number, and one bit that says whether it is in use,
for each that can be reached. All bits are 0 before and after.

Those of plus_times are here; `active_loops.Loops` are those of any semiring. `benchmarks/active.py` measures
them against GraphBLAS.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import get_thread_id, njit, prange  # type: ignore[attr-defined]

from gbnn.engine import kept_on_disk

__all__ = ["gather_dense", "gather_rows", "in_order", "into_dense", "into_rows", "pull", "pull_dense"]

# Products and the sums they go into may be rounded once; sums stay in the order they are written in.
_compiled = partial(kept_on_disk, parallel=True, fastmath={"contract"})


@_compiled
def into_dense(x_starts, found, x, e_starts, targets, values, y):  # type: ignore[no-untyped-def]
    """y[b, j] += x[p]·w over the active edges of row b; y is (batch, out), so that a row stays in cache."""
    for b in prange(x_starts.size - 1):
        row = y[b]
        for p in range(x_starts[b], x_starts[b + 1]):
            k = found[p]
            if k >= 0:
                for e in range(e_starts[k], e_starts[k + 1]):
                    row[targets[e]] += x[p] * values[e]


# Which of 64 bits is the only one set: the top six bits of its product with this number are all different
# (Leiserson, Prokop, Randall, "Using de Bruijn sequences to index a 1 in a computer word", 1998).
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.empty(64, dtype=np.int64)
for _bit in range(64):
    _PLACE[(int(_DE_BRUIJN) << _bit & (2**64 - 1)) >> 58] = _bit


@njit
def in_order(used, reached, n):  # type: ignore[no-untyped-def]
    """Sort the n neurons whose bits are set, reached[:n], and clear the bits."""
    if 8 * n > used.size:  # many: the bits are all of them, in order
        n = 0
        for word in range(used.size):
            bits = used[word]
            used[word] = np.uint64(0)
            while bits:
                lowest = bits & (~bits + np.uint64(1))
                reached[n] = (word << 6) + _PLACE[(lowest * _DE_BRUIJN) >> np.uint64(58)]
                n += 1
                bits ^= lowest
    else:
        reached[:n].sort()
        for m in range(n):
            used[reached[m] >> 6] = np.uint64(0)


@_compiled
def into_rows(  # type: ignore[no-untyped-def]
    x_starts, found, x, e_starts, ranks, values, at, acc, marks, out, y, counts
):
    """Write which neurons the active edges of each row reach (out, ascending) and sums of terms (y).

    Those of row b begin at at[x_starts[b]]; there are counts[b].
    """
    for b in prange(x_starts.size - 1):
        total, used = acc[get_thread_id()], marks[get_thread_id()]
        begin, n = at[x_starts[b]], 0
        reached = out[begin : at[x_starts[b + 1]]]
        for p in range(x_starts[b], x_starts[b + 1]):
            k = found[p]
            if k >= 0:
                for e in range(e_starts[k], e_starts[k + 1]):
                    r = ranks[e]
                    bit = np.uint64(1) << np.uint64(r & 63)
                    if used[r >> 6] & bit:
                        total[r] += x[p] * values[e]
                    else:
                        used[r >> 6] |= bit
                        total[r] = x[p] * values[e]
                        reached[n] = r
                        n += 1
        in_order(used, reached, n)
        for m in range(n):
            y[begin + m] = total[reached[m]]
        counts[b] = n


@_compiled
def gather_dense(x_starts, found, e_starts, targets, at, y, g):  # type: ignore[no-untyped-def]
    """g[a] = y[j, b] for each active edge a, from row b to j; y is (out, batch)."""
    for b in prange(x_starts.size - 1):
        for p in range(x_starts[b], x_starts[b + 1]):
            k = found[p]
            if k >= 0:
                a = at[p] - e_starts[k]
                for e in range(e_starts[k], e_starts[k + 1]):
                    g[a + e] = y[targets[e], b]


@_compiled
def gather_rows(x_starts, found, e_starts, ranks, at, acc, marks, y_starts, y_ranks, y, g):  # type: ignore[no-untyped-def]
    """g[a] = y of each active edge's row and target, or 0; entries of rank -1 have no edge."""
    for b in prange(x_starts.size - 1):
        held, used = acc[get_thread_id()], marks[get_thread_id()]
        for q in range(y_starts[b], y_starts[b + 1]):
            r = y_ranks[q]
            if r >= 0:
                held[r] = y[q]
                used[r >> 6] |= np.uint64(1) << np.uint64(r & 63)
        for p in range(x_starts[b], x_starts[b + 1]):
            k = found[p]
            if k >= 0:
                a = at[p] - e_starts[k]
                for e in range(e_starts[k], e_starts[k + 1]):
                    r = ranks[e]
                    if (used[r >> 6] >> np.uint64(r & 63)) & np.uint64(1):
                        g[a + e] = held[r]
                    else:
                        g[a + e] = 0
        for q in range(y_starts[b], y_starts[b + 1]):
            if y_ranks[q] >= 0:
                used[y_ranks[q] >> 6] = np.uint64(0)


@_compiled
def pull_dense(  # type: ignore[no-untyped-def]
    entries, groups, rows, found, x, e_starts, targets, values, dy, dw_at, dw, dx, inputs
):
    """Do what `pull` does; dy is (batch, out), and rows[p] is the row of entry p."""
    for s in prange(groups.size - 1):
        k = found[entries[groups[s]]]
        low, high = e_starts[k], e_starts[k + 1]
        own = dw[dw_at[s] : dw_at[s + 1]]
        own[:] = 0
        for m in range(groups[s], groups[s + 1]):
            p = entries[m]
            g = dy[rows[p]]
            for e in range(low, high):
                own[e - low] += x[p] * g[targets[e]]
            if inputs:
                total = dx.dtype.type(0)
                for e in range(low, high):
                    total += values[e] * g[targets[e]]
                dx[p] = total


@_compiled
def pull(entries, groups, found, x, e_starts, values, at, dy, dw_at, dw, dx, inputs):  # type: ignore[no-untyped-def]
    """Both gradients: dw of all edges of the active sources, source by source, and dx of each entry.

    Entries are grouped by source: group s is entries[groups[s]] up to entries[groups[s + 1]], and its edges'
    gradients begin at dw_at[s]. dy is given at each active edge.
    """
    for s in prange(groups.size - 1):
        k = found[entries[groups[s]]]
        low, high, own = e_starts[k], e_starts[k + 1], dw_at[s]
        dw[own : dw_at[s + 1]] = 0
        for m in range(groups[s], groups[s + 1]):
            p = entries[m]
            a = at[p] - low
            for e in range(low, high):
                dw[own + e - low] += x[p] * dy[a + e]
            if inputs:
                total = dx.dtype.type(0)
                for e in range(low, high):
                    total += values[e] * dy[a + e]
                dx[p] = total
