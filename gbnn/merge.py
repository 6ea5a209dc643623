"""Compiled loops over grouped edges: look up, merge, turn.

A rewiring leaves most edges where they are, and they are sorted already. So the next structure is made by
going once through what there is, with the few new edges sorted beside it, instead of by sorting everything.

`benchmarks/rewire.py` measures each loop against NumPy; only what is at least 1.5 times faster is used. They
make no arrays of their own. They index by uint64, since numba tests signed indices for being negative; and
as uint64 + int is a float there, constants are uint64, too.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["find", "merge", "turn"]

_u = np.uint64
_0, _1, _SCAN = _u(0), _u(1), _u(64)


_compiled = partial(kept_on_disk, nogil=True)


@_compiled
def _first_not_below(array, low, high, wanted):  # type: ignore[no-untyped-def]
    """Return the first position from `low` to `high` whose entry is at least `wanted`; else `high`.

    Halving down to a few entries, then counting those below: the count has no branch to be guessed wrong,
    and takes several entries at once.
    """
    while high - low > _SCAN:
        middle = low + ((high - low) >> _1)
        if array[middle - _1] < wanted:
            low = middle
        else:
            high = middle
    below = 0
    for k in range(low, high):
        below += array[k] < wanted
    return low + _u(below)


@_compiled
def find(ids, starts, others, majors, minors, positions):  # type: ignore[no-untyped-def]
    """positions[k] = where edge (majors[k], minors[k]) is among the grouped ones, or -1."""
    if ids.size == 0:
        positions[:] = -1
        return
    # Neuron `a` stands at place a of `ids` where all before it have edges, and further to the front by as
    # many as have none.
    none = ids[ids.size - 1] - (ids.size - 1)
    for k in range(majors.size):
        a, b = majors[k], minors[k]
        positions[k] = -1
        low, high = max(a - none, 0), min(a + 1, ids.size)
        if low >= high:
            continue
        row = _first_not_below(ids, _u(low), _u(high), a)
        if row == _u(high) or ids[row] != a:
            continue
        end = _u(starts[row + _1])
        place = _first_not_below(others, _u(starts[row]), end, b)
        if place < end and others[place] == b:
            positions[k] = np.int64(place)


@_compiled
def merge(  # type: ignore[no-untyped-def]
    ids, starts, others, keep, majors, minors, stay, stayed, new_ids, new_starts, new_others, origin
):
    """Write the grouped edges that are kept and the given ones, which are sorted, as one grouping.

    `origin` gets the position each edge had, -1 for a given one. If `stay`, one that is not kept but given
    again has its old position, too, and is marked in `stayed`. The last two arrays have room for one more
    than there will be: an edge that is not kept is written, too, and then written over, for a branch that is
    taken at random costs more than a useless write.

    Returns how many neurons have edges, or -1 if a given edge is kept; and how many are given again.
    """
    old, row, rows, given, stop, size = _u(ids.size), _0, _0, _0, _0, _u(majors.size)
    p, again = _0, 0
    while row < old or given < size:
        if row < old and (given == size or ids[row] <= majors[given]):
            neuron, a, end = ids[row], _u(starts[row]), _u(starts[row + _1])
            row += _1
        else:
            neuron, a, end = majors[given], _0, _0
        while stop < size and majors[stop] == neuron:
            stop += _1
        first = p
        while a < end and given < stop:
            one, other, kept = others[a], minors[given], keep[a]
            earlier = one < other
            new_others[p] = one if earlier else other
            origin[p] = np.int64(a) if earlier else -1
            if one == other:
                if kept:
                    return -1, 0
                again += 1
                if stay:
                    origin[p] = np.int64(a)
                    stayed[given] = True
            a += _u(earlier)
            given += _u(not earlier)
            p += _u(kept | (not earlier))
        while a < end:
            new_others[p] = others[a]
            origin[p] = np.int64(a)
            p += _u(keep[a])
            a += _1
        while given < stop:
            new_others[p] = minors[given]
            origin[p] = -1
            given += _1
            p += _1
        if p > first:
            new_ids[rows] = neuron
            new_starts[rows] = np.int64(first)
            rows += _1
    new_starts[rows] = np.int64(p)
    return np.int64(rows), again


@_compiled
def turn(ids, starts, others, places, order, majors):  # type: ignore[no-untyped-def]
    """Sort grouped edges by their other end, by counting.

    `places` counts in the edges of each other end and is left with where those of the next begin;
    edge k of the new order is `order[k]` of the old one, and comes from `majors[k]`.
    """
    for e in range(_u(others.size)):
        places[_u(others[e])] += 1
    total = 0
    for k in range(_u(places.size)):
        count = places[k]
        places[k] = total
        total += count
    for row in range(_u(ids.size)):
        for e in range(_u(starts[row]), _u(starts[row + _1])):
            other = _u(others[e])
            p = _u(places[other])
            places[other] = np.int64(p + _1)
            order[p] = np.int64(e)
            majors[p] = ids[row]
