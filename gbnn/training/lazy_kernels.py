"""Compiled loops of `catch_up`: one pass over the edges that are behind, whatever each of them missed.

`seen[e]` counts the steps that edge e has had, of `count`; a table's row k is for edges that have had k.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["adam_catch_up", "adam_note", "linear_catch_up", "linear_note"]

_one_thread = partial(kept_on_disk, parallel=False)


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


@_one_thread
def linear_catch_up(table, arrays, positions, seen, count):  # type: ignore[no-untyped-def]
    """Multiply what is kept of edge e, one number in each of `arrays`, by table[seen[e]]."""
    size = len(arrays)
    before = np.empty(size)
    for p in range(positions.size):
        e = positions[p]
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
def adam_catch_up(  # type: ignore[no-untyped-def]
    values, mean, square, positions, seen, count, moments, shares, centres, nearest, power1, power2,
    keep1, keep2, epsilon, lengths, roots, steps, window, tolerance,
):  # fmt: skip
    """Give each edge the steps it missed: by the series, or one by one where that is not exact enough."""
    last = moments.shape[1] - 1
    for p in range(positions.size):
        e = positions[p]
        k = np.int64(seen[e])
        if k == count:
            continue
        w, m, v = np.float64(values[e]), np.float64(mean[e]), np.float64(square[e])
        if m == 0.0:
            if shares[k] != 1.0:
                values[e] = w * shares[k]
        else:
            s = np.sqrt(v)
            divisor = s + epsilon * centres[k]
            z = -epsilon / divisor
            z2 = z * z
            z4 = z2 * z2
            # What the series leaves out, against its first term (`last` is 8).
            left = z4 * z4 * moments[k, last] * divisor
            if left <= tolerance * moments[k, 0] * (s + epsilon * nearest[k]):
                total = 0.0
                for j in range(last - 1, -1, -1):
                    total = total * z + moments[k, j]
                values[e] = w * shares[k] - m / divisor * total
            else:
                u = v
                stop = min(count, k + window)
                for i in range(k, stop):
                    m *= keep1
                    u *= keep2
                    w = w * steps[i] - lengths[i] * m / (np.sqrt(u) + epsilon * roots[i])
                values[e] = w * shares[stop]
        mean[e] *= power1[count - k]
        square[e] = v * power2[count - k]
        seen[e] = count
