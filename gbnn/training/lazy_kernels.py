"""Compiled loops of `catch_up`: one pass over the edges that are behind, whatever each of them missed.

`seen[e]` counts the steps that edge e has had, of `count`; a table's row k is for edges that have had k.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import prange

from gbnn.engine import kept_on_disk
from gbnn.semirings.kernels import start
from gbnn.training.step_kernels import CHUNK, NOWHERE, SHORT, are_ascending, end_of_part, read_only

__all__ = ["adam_catch_up", "adam_note", "begin", "linear_catch_up", "linear_note"]

Array = np.ndarray[Any, Any]

PART = 512
"""Edges that are looked at together."""

_one_thread = partial(kept_on_disk, parallel=False, error_model="numpy")
_parallel = partial(kept_on_disk, parallel=True, fastmath=False, error_model="numpy")


def begin(kernel: Any, positions: Array | None, seen: Array, count: int, *arguments: Any) -> None:
    """Start a kernel that brings edges at `positions` up to date, or all; its second argument says how.

    By one thread where an edge might be there twice: after the first time it is up to date.
    """
    if positions is None:
        return start(kernel, seen.size, NOWHERE, True, seen, count, *arguments)
    if positions.size:
        at = read_only(np.ascontiguousarray(positions))
        ascending = are_ascending(at, seen.size)
        start(kernel, at.size if ascending else 0, at, ascending, seen, count, *arguments)
    return None


@_one_thread
def linear_note(matrix, table, count):  # type: ignore[no-untyped-def]
    """table[k] = matrix @ table[k], for k < count."""
    size = matrix.shape[0]
    column = np.empty(size)
    for k in range(count):
        for j in range(size):
            for i in range(size):
                column[i] = table[k, i, j]
            for i in range(size):
                total = 0.0
                for l in range(size):  # noqa: E741
                    total += matrix[i, l] * column[l]
                table[k, i, j] = total


@_parallel
def linear_catch_up(positions, ascending, seen, count, table, arrays):  # type: ignore[no-untyped-def]
    """Multiply what is kept of edge e, one number in each of `arrays`, by table[seen[e]]."""
    size = len(arrays)
    everywhere = positions.size == 0
    n = seen.size if everywhere else positions.size
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        before = np.empty(size)
        for p in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            e = p if everywhere else positions[p]
            k = seen[e]
            if k == count:
                continue
            for j in range(size):
                before[j] = arrays[j][e]
            for i in range(size):
                total = 0.0
                for j in range(size):
                    total += table[k, i, j] * before[j]
                arrays[i][e] = total
            seen[e] = count


@_one_thread
def adam_note(moments, shares, centres, ratio, growth, length, root, share, count, window):  # type: ignore[no-untyped-def]
    """Add a step to the sums of `AdamTable`, for edges that have had k of the `count` steps before it."""
    terms = moments.shape[1]
    if share != 1.0:
        for k in range(count + 1):
            shares[k] *= share
            for j in range(terms):
                moments[k, j] *= share
    for k in range(max(0, count + 1 - window), count + 1):
        missed = count + 1 - k
        term = length * ratio[missed]
        away = root * growth[missed] - centres[k]
        for j in range(terms):
            moments[k, j] += term
            term *= away


@_one_thread
def _end_of_alike(seen, low, high):  # type: ignore[no-untyped-def]
    """Return where, at `high` at the latest, edges from `low` on have had another number of steps."""
    part = seen[low:high]
    k = part[0]
    other = k ^ k
    for i in range(part.size):  # to the end, as that runs in vectors
        other |= part[i] ^ k
    if other == 0:
        return high
    i = 1
    while part[i] == k:
        i += 1
    return low + i


@partial(_one_thread, inline="always")  # more than twice as fast as a call that hands on ten arrays
def _adam_edge(  # type: ignore[no-untyped-def]
    w, m, v, k, count, moments, shares, centres, nearest, lengths, roots, steps, window, numbers
):
    """Return the value of an edge that missed all but the first k steps; its mean is not 0."""
    keep1, keep2, epsilon, tolerance = numbers
    last = moments.shape[1] - 1
    s = np.sqrt(v)
    divisor = s + epsilon * centres[k]
    z = -epsilon / divisor
    z4 = z * z * z * z
    # What the series leaves out, against its first term (`last` is 8).
    if z4 * z4 * moments[k, last] * divisor <= tolerance * moments[k, 0] * (s + epsilon * nearest[k]):
        total = 0.0
        for j in range(last - 1, -1, -1):
            total = total * z + moments[k, j]
        return w * shares[k] - m / divisor * total
    stop = min(count, k + window)
    for i in range(k, stop):
        m *= keep1
        v *= keep2
        w = w * steps[i] - lengths[i] * m / (np.sqrt(v) + epsilon * roots[i])
    return w * shares[stop]


@_one_thread
def _adam_run(  # type: ignore[no-untyped-def]
    w, m, v, share, centre, nearest, row, power1, power2, numbers
):
    """Do edges that have had the same steps, in vectors, if the series will do for all; return whether so.

    It is decided for the smallest of their mean squares: the smaller, the more the series leaves out.
    """
    epsilon, tolerance = numbers[2], numbers[3]
    away = epsilon * centre
    least = np.inf
    for i in range(m.size):
        if m[i] != 0:
            least = min(least, np.float64(v[i]))
    if least == np.inf:
        if share != 1.0:
            for i in range(w.size):
                w[i] = w[i] * share
    else:
        s = np.sqrt(least)
        z4 = (epsilon / (s + away)) ** 4
        enough = z4 * z4 * row[row.size - 1] * (s + away) <= tolerance * row[0] * (s + epsilon * nearest)
        if not enough:  # nor where a comparison with NaN says so
            return False
        c0, c1, c2, c3, c4, c5, c6, c7 = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
        for i in range(w.size):
            part = 1.0 / (np.sqrt(np.float64(v[i])) + away)
            z = -epsilon * part
            total = ((((((c7 * z + c6) * z + c5) * z + c4) * z + c3) * z + c2) * z + c1) * z + c0
            w[i] = w[i] * share - m[i] * part * total
    for i in range(m.size):
        m[i] = m[i] * power1
        v[i] = v[i] * power2
    return True


@_parallel
def adam_catch_up(  # type: ignore[no-untyped-def]
    positions, ascending, seen, count, values, mean, square, power1, power2, window, numbers,
    moments, shares, centres, nearest, lengths, roots, steps,
):  # fmt: skip
    """Give each edge the steps it missed: by the series, or one by one where that is not exact enough.

    Edges of a source were mostly touched together, and so are done in vectors (`_adam_run`).
    """
    everywhere = positions.size == 0
    n = seen.size if everywhere else positions.size
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = min(p + PART, stop)
            if not everywhere:
                q = end_of_part(positions, p, q) if ascending else p + 1
            low = p if everywhere else positions[p]
            if everywhere or positions[q - 1] - low == q - 1 - p:
                high = _end_of_alike(seen, low, low + q - p)
                if high - low < SHORT:
                    q = min(q, p + SHORT)
                else:
                    q = p + high - low
                    k = np.int64(seen[low])
                    w, m, v = values[low:high], mean[low:high], square[low:high]
                    if k == count or _adam_run(
                        w, m, v, shares[k], centres[k], nearest[k], moments[k],
                        power1[count - k], power2[count - k], numbers,
                    ):  # fmt: skip
                        seen[low:high] = count
                        p = q
                        continue
            for i in range(p, q):
                e = i if everywhere else positions[i]
                k = np.int64(seen[e])
                if k == count:
                    continue
                if mean[e] == 0:
                    values[e] = values[e] * shares[k]
                else:
                    values[e] = _adam_edge(
                        np.float64(values[e]), np.float64(mean[e]), np.float64(square[e]), k, count,
                        moments, shares, centres, nearest, lengths, roots, steps, window, numbers,
                    )  # fmt: skip
                mean[e] = mean[e] * power1[count - k]
                square[e] = square[e] * power2[count - k]
                seen[e] = count
            p = q
