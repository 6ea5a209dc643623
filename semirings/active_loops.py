"""The loops over active edges of any semiring, compiled for its own scalar functions.

They are those of `active_kernels`, where the arrays are explained. Functions are part of what is compiled, so
it cannot be kept on disk; as it is compiled in each process that needs it, it is for one thread, which takes
the compiler a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gbnn.semirings.active_kernels import in_order

__all__ = ["Loops", "loops_of"]

Loop = Callable[..., None]


class Loops(NamedTuple):
    """Compiled loops of one semiring."""

    into_dense: Loop
    into_rows: Loop
    count_into_dense: Loop
    count_into_rows: Loop
    pull: Loop


def loops_of(add: Any, identity: float, multiply: Any, partials: Any, selective: bool) -> Loops:
    """Return the loops of a semiring; numba compiles each when it is first called."""

    @njit
    def into_dense(x_starts, found, x, e_starts, targets, values, y):  # type: ignore[no-untyped-def]
        for b in range(x_starts.size - 1):
            for p in range(x_starts[b], x_starts[b + 1]):
                k = found[p]
                if k >= 0:
                    for e in range(e_starts[k], e_starts[k + 1]):
                        y[targets[e], b] = add(y[targets[e], b], multiply(x[p], values[e]))

    @njit
    def into_rows(  # type: ignore[no-untyped-def]
        x_starts, found, x, e_starts, ranks, values, at, acc, marks, out, y, counts
    ):
        total, used = acc[0], marks[0]
        for b in range(x_starts.size - 1):
            begin, n = at[x_starts[b]], 0
            reached = out[begin : at[x_starts[b + 1]]]
            for p in range(x_starts[b], x_starts[b + 1]):
                k = found[p]
                if k >= 0:
                    for e in range(e_starts[k], e_starts[k + 1]):
                        r = ranks[e]
                        bit = np.uint64(1) << np.uint64(r & 63)
                        term = multiply(x[p], values[e])
                        if used[r >> 6] & bit:
                            total[r] = add(total[r], term)
                        else:
                            used[r >> 6] |= bit
                            total[r] = add(total.dtype.type(identity), term)
                            reached[n] = r
                            n += 1
            in_order(used, reached, n)
            for m in range(n):
                y[begin + m] = total[reached[m]]
            counts[b] = n

    @njit
    def count_into_dense(x_starts, found, x, e_starts, targets, values, at, y, count):  # type: ignore[no-untyped-def]
        # count[j, b] += how many active edges give a term equal to the output, which is y[a].
        for b in range(x_starts.size - 1):
            for p in range(x_starts[b], x_starts[b + 1]):
                k = found[p]
                if k >= 0:
                    a = at[p] - e_starts[k]
                    for e in range(e_starts[k], e_starts[k + 1]):
                        if y.dtype.type(multiply(x[p], values[e])) == y[a + e]:
                            count[targets[e], b] += 1

    @njit
    def count_into_rows(  # type: ignore[no-untyped-def]
        x_starts, found, x, e_starts, ranks, values, at, y, acc, y_starts, y_ranks, count
    ):
        # The same, into the entries of a sparse output.
        total = acc[0]
        for b in range(x_starts.size - 1):
            for q in range(y_starts[b], y_starts[b + 1]):
                total[y_ranks[q]] = 0
            for p in range(x_starts[b], x_starts[b + 1]):
                k = found[p]
                if k >= 0:
                    a = at[p] - e_starts[k]
                    for e in range(e_starts[k], e_starts[k + 1]):
                        if y.dtype.type(multiply(x[p], values[e])) == y[a + e]:
                            total[ranks[e]] += 1
            for q in range(y_starts[b], y_starts[b + 1]):
                count[q] += total[y_ranks[q]]

    @njit
    def pull(  # type: ignore[no-untyped-def]
        entries, groups, found, x, e_starts, values, at, y, dy, dw_at, dw, dx, inputs
    ):
        # y and dy are given at each active edge; a selective ⊕ passes its gradient only through the terms
        # that are the output.
        for s in range(groups.size - 1):
            k = found[entries[groups[s]]]
            low, own = e_starts[k], dw_at[s]
            dw[own : dw_at[s + 1]] = 0
            for m in range(groups[s], groups[s + 1]):
                p = entries[m]
                a = at[p] - low
                for e in range(low, e_starts[k + 1]):
                    g = dy[a + e]
                    if g == 0:
                        continue
                    if selective and y.dtype.type(multiply(x[p], values[e])) != y[a + e]:
                        continue
                    by_x, by_w = partials(x[p], values[e], y[a + e])
                    dw[own + e - low] += g * by_w
                    if inputs:
                        dx[p] += g * by_x

    return Loops(into_dense, into_rows, count_into_dense, count_into_rows, pull)
