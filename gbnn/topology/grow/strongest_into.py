"""The strongest absent edges into each target by |dloss/dw|, exactly, one block of targets at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, NonFiniteError, check_array
from gbnn.semirings import Probe
from gbnn.semirings.kernels import in_order, launched
from gbnn.topology.grow.strongest import SINGLE, check_layer
from gbnn.topology.grow.strongest_neurons import check_derivatives, neurons
from gbnn.topology.grow.strongest_routes import blas_rounding

__all__ = ["strongest_into"]

Array = np.ndarray[Any, Any]

# Pairs of one block of targets, all sources each: a megabyte of derivatives stays in the processor's cache.
_BLOCK = 2**20
# Where that is a target or two, blocks are of so many: together less than the layer's own x in a usual batch.
_LEAST = 64


def strongest_into(probe: Probe, present: Edges, targets: Array, counts: Array) -> tuple[Array, Array]:
    """Return for each of some targets the absent edges into it of largest |s|, s = Σ_b x[b, i]·dy[b, j].

    s is summed in float64 in the order of the samples (`Probe.exact`); at a tie the smaller source wins.
    BLAS only proposes: where its rounding could decide which edges of a target are chosen, all edges that
    could be are scored so. What is found depends neither on the block nor on the number of threads.

    Parameters
    ----------
    probe : Probe
        The layer's last x and dy. Neurons and samples that are all zero are passed over.
    present : Edges
        Edges that cannot be grown.
    targets : ndarray of int64, shape (k,), ascending
    counts : ndarray of int64, shape (k,)
        How many edges each gets: no more than are absent.

    Returns
    -------
    sources, targets : ndarray of int64, shape (sum of counts,)
        By target, then source.

    Raises
    ------
    ArgumentError, KindError
        If a target gets more edges than are absent, targets do not ascend or are not the layer's, or `probe`
        and `present` are none or of different shapes.
    NonFiniteError
        If a derivative by an absent edge of the layer is NaN or infinite.

    Notes
    -----
    Memory is O(nnz + grown + block + in + out), a block being 2**18 derivatives or those of 32 targets.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.semirings import Probe
    >>> from gbnn.topology import strongest_into
    >>> probe = Probe(np.asfortranarray([[1.0, 2.0, 3.0]]), np.asfortranarray([[1.0, -1.0]]))
    >>> present, _ = Edges.from_coo([2], [1], (3, 2))
    >>> strongest_into(probe, present, np.array([0, 1]), np.array([1, 1]))
    (array([2, 1]), array([0, 1]))
    """
    rows, columns = check_layer(probe, present)
    targets, counts = _integers("targets", targets), _integers("counts", counts)
    if targets.size and (targets[0] < 0 or targets[-1] >= columns or (np.diff(targets) <= 0).any()):
        raise ArgumentError("targets", f"distinct ones below {columns}, ascending", targets)
    first, last = _held(present, targets)
    if counts.shape != targets.shape or ((counts < 0) | (counts > rows - (last - first))).any():
        raise ArgumentError("counts", "for each target, at most its absent edges", counts)
    wanted = np.flatnonzero(counts)
    targets, counts, first, last = (array[wanted] for array in (targets, counts, first, last))
    if not wanted.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    dtype = probe.x.dtype if len(probe.x) <= SINGLE else np.dtype(np.float64)
    left, right = neurons(probe, dtype)
    check_derivatives(probe, present, left, right, _BLOCK)
    # Of the targets those that have derivatives, and where each stands among all of them.
    _, ours, theirs = np.intersect1d(targets, right.ids, assume_unique=True, return_indices=True)
    right = right.take(theirs)
    sources, owners = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    if left.ids.size and ours.size:
        gamma, tiny = blas_rounding(len(probe.x), dtype)
        with np.errstate(over="ignore"):
            margins = gamma * (left.norms.max() * right.norms) + tiny
        place = np.full(rows, -1)
        place[left.ids] = np.arange(left.ids.size)
        x = left.strip(slice(None))
        search = _Search(x, place, present.by_target.others, min(ours.size, max(_LEAST, _BLOCK // len(x))))
        for start in range(0, ours.size, search.width):
            block = slice(start, start + search.width)
            mine, need = ours[block], counts[ours[block]]
            column, at, sure = search.reaching(
                right.strip(block), need, first[mine], last[mine], margins[block]
            )
            source, owner = left.ids[at], mine[column]
            doubtful = ~sure[column]
            sources.append(source[~doubtful])
            owners.append(owner[~doubtful])
            if doubtful.any():
                best = _decided(probe, source[doubtful], owner[doubtful], targets, counts)
                sources.append(best[0])
                owners.append(best[1])
    source, owner = np.concatenate(sources), np.concatenate(owners)
    more = _smallest_free(source, owner, counts, first, last, present)
    source, owner = np.append(source, more[0]), np.append(owner, more[1])
    order = np.argsort(owner * rows + source, kind="stable")  # no overflow: x and dy are so many arrays
    return source[order], targets[owner[order]]


def _integers(where: str, values: Any) -> Array:
    """Return integers as a 1-D array of int64, or raise; an empty list has a dtype of floats."""
    array = check_array(where, values, "iuf", "integers")
    if array.size:
        check_array(where, array, "iu", "integers")
    if array.ndim != 1:
        raise ArgumentError(where, "a 1-D array", f"shape {array.shape}")
    return array.astype(np.int64, copy=False)


def _held(present: Edges, targets: Array) -> tuple[Array, Array]:
    """Return where the edges into each target start and stop among the edges by target."""
    ids, starts, _ = present.by_target
    at = np.searchsorted(ids, targets)
    known = np.minimum(at, ids.size - 1)
    has = ids[known] == targets if ids.size else np.zeros(targets.size, dtype=bool)
    return starts[at], starts[at + has]


class _Search:
    """What each block of targets goes through: one BLAS product and two compiled loops over it."""

    def __init__(self, x: Array, place: Array, others: Array, width: int) -> None:
        self._x, self._place, self._others, self.width = x, place, others, width
        self._float, self._int = x.dtype, np.dtype(f"i{x.itemsize}")
        self._scores = np.empty((width, len(x)), dtype=self._float)
        self._spare = np.empty((width, len(x)), dtype=self._int)
        self._tops = np.empty((width, -(-len(x) // 64)), dtype=self._int)

    def reaching(
        self, dy: Array, need: Array, first: Array, last: Array, margins: Array
    ) -> tuple[Array, Array, Array]:
        """Return the column and the source of each edge that could be chosen, and which columns are sure.

        BLAS and the score of an edge differ by at most its column's margin. If the best `need` edges of a
        column have there at least L, then so many have a score of L less the margin; what BLAS puts more
        than two margins below L cannot be among the best. A column is sure if only `need` edges are left.
        """
        scores, spare, tops = (array[: len(dy)] for array in (self._scores, self._spare, self._tops))
        with np.errstate(all="ignore"):
            np.matmul(dy, self._x.T, out=scores)
        sizes = scores.view(self._int)
        limits, found = np.empty(len(dy), dtype=self._int), np.empty(len(dy), dtype=np.int64)
        infinity = np.array(np.inf, dtype=self._float).view(self._int)[()]
        _limits(sizes, need, first, last, self._others, self._place, infinity, tops, spare, limits)
        low = np.maximum(np.maximum(limits, 0).view(self._float) - 2 * margins, 0)
        sure = low > 0
        low = np.nextafter(low.astype(self._float), self._float.type(0))
        _at_least(sizes, tops, low.view(self._int), spare, found)
        most = int(found.max())
        taken = np.arange(most) < found[:, None]
        return np.nonzero(taken)[0], spare[:, :most][taken], sure & (found == need)


# A float without its sign bit compares like an integer, and integers are compared in vector registers. Loops
# that serve one row are functions of their own: inside a parallel loop they would not be vectorised.


@njit
def _nth_largest(array, size, n):  # type: ignore[no-untyped-def]
    """Return the n-th largest of the first `size` integers, all at least -1: by halving, bit by bit."""
    whole = array.dtype.type
    low, high = whole(-1), whole(-1)
    for k in range(size):
        high = max(high, array[k])
    while low < high:
        middle = whole(high - (high - low) // 2)
        count = 0
        for k in range(size):
            count += array[k] >= middle
        if count >= n:
            low = middle
        else:
            high = whole(middle - 1)
    return low


@njit
def _sizes(row):  # type: ignore[no-untyped-def]
    """Take the sign off the bits of floats."""
    mask = ~(row.dtype.type(1) << row.dtype.type(8 * row.itemsize - 1))
    for i in range(row.size):
        row[i] &= mask


@njit
def _tops(row, tops):  # type: ignore[no-untyped-def]
    """tops[k] = the largest of the k-th 64 integers."""
    for k in range(tops.size):
        part = row[64 * k : 64 * k + 64]
        top = part[0]
        for i in range(part.size):  # a length known to the compiler is written out in full, one at a time
            top = max(top, part[i])
        tops[k] = top


@njit
def _collect(row, tops, low, values, out):  # type: ignore[no-untyped-def]
    """Write what is at least `low`, or else its positions, to `out`; return how many there are."""
    found = 0
    for k in range(tops.size):
        if tops[k] >= low:
            part = row[64 * k : 64 * k + 64]
            for i in range(part.size):
                if part[i] >= low:
                    out[found] = part[i] if values else 64 * k + i
                    found += 1
    return found


@njit
def _limit(row, tops, n, infinity, spare):  # type: ignore[no-untyped-def]
    """Return the n-th largest size in the row; -1 if there is none or one is not finite.

    The n-th largest top is a lower bound that few pass; only those are looked at closely.
    """
    bound = row.dtype.type(0)
    if n <= tops.size:
        bound = max(bound, _nth_largest(tops, tops.size, n))
    found = _collect(row, tops, bound, True, spare)
    for k in range(found):
        if spare[k] >= infinity:
            return row.dtype.type(-1)
    return _nth_largest(spare, found, n) if found >= n else row.dtype.type(-1)


@launched
@in_order
def _limits(x, need, first, last, others, place, infinity, tops, spare, out):  # type: ignore[no-untyped-def]
    """out[c] = the need[c]-th largest |x[c]| among absent edges, by `_limit`.

    x holds the bits of floats, and afterwards those of their sizes, -1 for edges that are there.
    """
    for c in prange(out.size):
        _sizes(x[c])
        for e in range(first[c], last[c]):
            i = place[others[e]]
            if i >= 0:
                x[c, i] = -1
        _tops(x[c], tops[c])
        out[c] = _limit(x[c], tops[c], need[c], infinity, spare[c])


@launched
@in_order
def _at_least(x, tops, low, spare, out):  # type: ignore[no-untyped-def]
    """spare[c, :out[c]] = the positions, ascending, where x[c] >= low[c]."""
    for c in prange(out.size):
        out[c] = _collect(x[c], tops[c], low[c], False, spare[c])


def _decided(probe: Probe, source: Array, owner: Array, targets: Array, counts: Array) -> tuple[Array, Array]:
    """Return of these absent edges the best into each target, none of score zero."""
    scores = np.abs(probe.exact(source, targets[owner]))
    if not np.isfinite(scores).all():
        raise NonFiniteError("gradient growth", "finite derivatives by absent edges", "overflow")
    some = np.flatnonzero(scores)
    order = some[np.lexsort((source[some], -scores[some], owner[some]))]
    source, owner = source[order], owner[order]
    best = np.arange(owner.size) - np.searchsorted(owner, owner) < counts[owner]
    return source[best], owner[best]


def _smallest_free(
    source: Array, owner: Array, counts: Array, first: Array, last: Array, present: Edges
) -> tuple[Array, Array]:
    """Return the smallest absent edges not among those given, so that each target gets its count."""
    chosen = np.bincount(owner, minlength=counts.size)
    lack = counts - chosen
    short = np.flatnonzero(lack)
    # So many of the smallest sources hold enough that are free.
    room = np.minimum(present.shape[0], lack + chosen + last - first)[short]
    begin = np.cumsum(room) - room
    free = np.ones(room.sum(), dtype=bool)
    at = np.full(counts.size, -1)
    at[short] = np.arange(short.size)
    degree = (last - first)[short]
    held = np.repeat(first[short] - np.cumsum(degree) + degree, degree) + np.arange(degree.sum())
    taken = np.concatenate([present.by_target.others[held], source])
    group = np.concatenate([np.repeat(np.arange(short.size), degree), at[owner]])
    near = (group >= 0) & (taken < room[group]) if short.size else np.zeros(taken.size, dtype=bool)
    free[begin[group[near]] + taken[near]] = False
    place = np.flatnonzero(free)
    group = np.repeat(np.arange(short.size), room)[place]
    kept = np.arange(place.size) - np.searchsorted(group, group) < lack[short][group]
    return (place - begin[group])[kept] if short.size else place, short[group[kept]]
