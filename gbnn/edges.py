"""`Edges`, where the edges of one layer go; `Change`, what a rewiring did to them, is named here, too."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gbnn import merge
from gbnn.change import Change
from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.lookup import Lookup

__all__ = [
    "MAX_FEATURES",
    "Change",
    "Compressed",
    "Edges",
    "canonical_order",
    "check_indices",
    "check_shape",
    "shape_of",
]

Array = np.ndarray[Any, Any]

MAX_FEATURES = 2**60
"""The largest dimension of a layer: GraphBLAS's own limit."""


class Compressed(NamedTuple):
    """Edges grouped by one end, only for the neurons that have edges.

    Neuron `ids[k]` has the edges `starts[k]` up to `starts[k + 1]`; `others` is the other end of each.
    All are int64, contiguous and read-only: GraphBLAS reads them in place (as uint64, which they equal).
    """

    ids: Array
    starts: Array
    others: Array


def check_shape(in_features: Any, out_features: Any) -> tuple[int, int]:
    """Return the two dimensions as ints from 1 to 2**60, or raise."""
    return (
        check_int("in_features", in_features, 1, MAX_FEATURES),
        check_int("out_features", out_features, 1, MAX_FEATURES),
    )


def shape_of(shape: Any) -> tuple[int, int]:
    """Return a pair of dimensions as ints from 1 to 2**60, or raise."""
    try:
        in_features, out_features = shape
    except (TypeError, ValueError):
        raise ArgumentError("shape", "two integers, in_features and out_features", repr(shape)) from None
    return check_shape(in_features, out_features)


def check_indices(where: str, values: Any, size: int) -> Array:
    """Return a new int64 array of indices from 0 to size - 1, or raise."""
    try:
        array = np.asarray(values)
    except ValueError:  # a list of lists of different lengths
        raise KindError(where, "integers", type(values).__name__) from None
    if array.ndim != 1:
        raise ArgumentError(where, "a 1-D array", f"{array.ndim} dimensions")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise KindError(where, "integers", array.dtype)
    # As unsigned numbers, negative ones are the largest of all: one look tells whether all are in range.
    if int(array.view(array.dtype.str.replace("i", "u")).max()) < min(size, 2 ** (8 * array.itemsize - 1)):
        return array.astype(np.int64)
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        span = f"indices from 0 to {size - 1}" if size else "none, as there is nothing to index"
        raise ArgumentError(where, span, low if low < 0 else high)
    return array.astype(np.int64)


def _fixed(array: Array) -> Array:
    """Return a read-only view: GraphBLAS reads these indices in place, and trusts them."""
    view = array.view()
    view.flags.writeable = False
    return view


def _compress(majors: Array, minors: Array) -> Compressed:
    """Compress edges that are sorted by (major, minor)."""
    first = np.empty(majors.size, dtype=bool)
    if majors.size:
        first[0] = True
        np.not_equal(majors[1:], majors[:-1], out=first[1:])
    begin = np.flatnonzero(first)
    starts = np.append(begin, majors.size).astype(np.int64, copy=False)
    return Compressed(_fixed(majors[begin]), _fixed(starts), _fixed(np.ascontiguousarray(minors)))


def canonical_order(majors: Array, minors: Array, shape: tuple[int, int]) -> Array:
    """Return the permutation that sorts edges by (major, minor).

    One combined key sorts about ten times faster than two keys (NumPy's vectorised sort). Where the product
    of the dimensions does not fit an int64, that of the ranks does.
    """
    rows, columns = shape
    if rows * columns >= 2**63:
        majors, rows = _ranks(majors), majors.size
    if rows * columns >= 2**63:
        minors, columns = _ranks(minors), minors.size
    key = majors * columns + minors
    if (key[1:] >= key[:-1]).all():
        return np.arange(key.size)
    return np.argsort(key)


def _ranks(values: Array) -> Array:
    """Return for each value how many different ones are smaller."""
    order = np.argsort(values)
    ascending = values[order]
    result = np.zeros_like(values)
    result[order[1:]] = np.cumsum(ascending[1:] != ascending[:-1])
    return result


def _readable(array: Any) -> Array:
    """Return indices as compiled loops take them: numba compiles anew for each kind of array."""
    return _fixed(np.ascontiguousarray(array, dtype=np.int64))


class Edges:
    """The edges of a layer in canonical order: by source, then by target.

    Parameters
    ----------
    sources : ndarray of int64, shape (nnz,)
    targets : ndarray of int64, shape (nnz,)
        Sorted by (source, target), no duplicates, in range: `Edges.from_coo` checks and sorts.
    shape : (int, int)
        in_features, out_features.

    Notes
    -----
    Memory is O(nnz) whatever the shape: only neurons that have edges take part (`Compressed`).

    Examples
    --------
    >>> from gbnn.edges import Edges
    >>> edges, order = Edges.from_coo([7, 0, 7], [1, 5, 0], (8, 2**60))
    >>> edges.by_source.ids, edges.by_source.starts, edges.by_source.others
    (array([0, 7]), array([0, 1, 3]), array([5, 0, 1]))
    >>> order
    array([1, 2, 0])
    """

    def __init__(self, sources: Array, targets: Array, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.by_source = _compress(sources, targets)

    @classmethod
    def _of(cls, by_source: Compressed, shape: tuple[int, int]) -> Edges:
        edges = cls.__new__(cls)
        edges.shape, edges.by_source = shape, by_source
        return edges

    @classmethod
    def grouped(cls, ids: Array, starts: Array, targets: Array, shape: tuple[int, int]) -> Edges:
        """Return edges that are grouped by source already; nothing is checked, nothing copied.

        Parameters
        ----------
        ids : ndarray of int64, shape (k,)
            The sources that have edges, ascending.
        starts : ndarray of int64, shape (k + 1,)
            Source `ids[k]` has the edges `starts[k]` up to `starts[k + 1]`.
        targets : ndarray of int64, shape (nnz,)
            Ascending for each source, none twice.
        shape : (int, int)

        Examples
        --------
        >>> import numpy as np
        >>> from gbnn.edges import Edges
        >>> Edges.grouped(np.array([3]), np.array([0, 2]), np.array([0, 5]), (8, 8)).sources
        array([3, 3])
        """
        fixed = (_fixed(np.ascontiguousarray(array, dtype=np.int64)) for array in (ids, starts, targets))
        return cls._of(Compressed(*fixed), shape)

    @classmethod
    def from_coo(cls, sources: Any, targets: Any, shape: tuple[int, int]) -> tuple[Edges, Array]:
        """Check and sort edges; return them and the permutation that sorted them.

        Parameters
        ----------
        sources, targets : array_like of int, shape (nnz,)
            In any order.
        shape : (int, int)
            in_features, out_features; each from 1 to 2**60.

        Returns
        -------
        edges : Edges
        order : ndarray of int64, shape (nnz,)
            Edge k of `edges` was edge `order[k]` of the input.

        Raises
        ------
        ArgumentError
            If the shape is absurd, lengths differ, an index is out of range, or an edge occurs twice.
        KindError
            If the indices are not integers.
        """
        shape = shape_of(shape)
        source = check_indices("sources", sources, shape[0])
        target = check_indices("targets", targets, shape[1])
        if source.size != target.size:
            raise ArgumentError("targets", f"{source.size} indices, as many as sources", target.size)
        order = canonical_order(source, target, shape)
        source, target = source[order], target[order]
        same = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
        if same.any():
            k = int(np.argmax(same))
            twice = f"({source[k]}, {target[k]}) twice ({np.count_nonzero(same)} duplicates in all)"
            raise ArgumentError("edges", "each edge once", twice)
        return cls(source, target, shape), order

    @property
    def nnz(self) -> int:
        """Number of edges."""
        return int(self.by_source.others.size)

    @property
    def targets(self) -> Array:
        """Target of each edge, int64, shape (nnz,)."""
        return self.by_source.others

    @property
    def sources(self) -> Array:
        """Source of each edge, int64, shape (nnz,); made anew at each call."""
        return np.repeat(self.by_source.ids, np.diff(self.by_source.starts))

    @property
    def _many_for_targets(self) -> bool:
        """Whether an array of one entry for each target, with edges or without, is still O(nnz)."""
        return self.shape[1] <= 4 * self.nnz

    @cached_property
    def _turned(self) -> tuple[Compressed, Array]:
        columns = self.shape[1]
        if not self._many_for_targets:
            order = canonical_order(self.targets, np.arange(self.nnz), (columns, self.nnz))
            return _compress(self.targets[order], self.sources[order]), order
        ends = np.zeros(columns, dtype=np.int64)
        order, sources = np.empty(self.nnz, dtype=np.int64), np.empty(self.nnz, dtype=np.int64)
        merge.turn(*self.by_source, ends, order, sources)
        ids = np.flatnonzero(np.diff(ends, prepend=0))
        return Compressed(_fixed(ids), _fixed(np.append(0, ends[ids])), _fixed(sources)), order

    @property
    def order(self) -> Array:
        """The permutation from canonical order to order by (target, source), int64, shape (nnz,)."""
        return self._turned[1]

    @property
    def by_target(self) -> Compressed:
        """The same edges grouped by target; its edge k is canonical edge `order[k]`."""
        return self._turned[0]

    @cached_property
    def source_lookup(self) -> Lookup:
        """Which of `by_source.ids` a neuron is."""
        return Lookup(self.by_source.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the indices; the view by target, made when a product asks, takes twice as many more."""
        return sum(a.nbytes for a in self.by_source)

    def fans(self) -> tuple[Array, Array]:
        """Return for each edge how many edges enter its target and how many leave its source, (nnz,) each."""
        out_of = np.diff(self.by_source.starts)
        if self._many_for_targets:
            fan_in = np.bincount(self.targets, minlength=self.shape[1])[self.targets]
        else:
            ordered = np.sort(self.targets)
            first = np.flatnonzero(np.diff(ordered, prepend=-1))
            into = np.diff(first, append=ordered.size)
            fan_in = into[Lookup(ordered[first]).find(self.targets)]
        return fan_in, np.repeat(out_of, out_of)

    def find(self, sources: Array, targets: Array) -> Array:
        """Return the position of each given edge, or -1 where there is no such edge.

        Parameters
        ----------
        sources, targets : ndarray of int64, shape (k,)

        Returns
        -------
        ndarray of int64, shape (k,)
        """
        source, target = _readable(sources), _readable(targets)
        if source.shape != target.shape or source.ndim != 1:
            raise ArgumentError("targets", f"shape {source.shape}, one an edge, as sources", target.shape)
        positions = np.empty(source.size, dtype=np.int64)
        merge.find(*self.by_source, source, target, positions)
        return positions

    def rewired(
        self, drop: Any, sources: Any, targets: Any, *, keep_regrown: bool = False
    ) -> tuple[Edges, Change, Array]:
        """Return these edges without some and with others; these stay as they are.

        Takes O(nnz + g·log g): what is sorted already is not sorted again.

        Parameters
        ----------
        drop : array_like of int, shape (d,)
            Positions of the edges that go.
        sources, targets : array_like of int, shape (g,)
            Edges that come, in any order.
        keep_regrown : bool
            Whether an edge that goes and comes in the same call stays the edge it is, or is a new one.

        Returns
        -------
        edges : Edges
        change : Change
        order : ndarray of int64, shape (change.grown,)
            New edge k, in the new order, was edge `order[k]` of those given.

        Raises
        ------
        ArgumentError, KindError
            On positions out of range or given twice, edges out of range, and edges that exist already.

        Examples
        --------
        >>> from gbnn.edges import Edges
        >>> edges, _ = Edges.from_coo([0, 1, 2], [0, 0, 0], (3, 2**60))
        >>> after, change, order = edges.rewired([1], [2, 0], [5, 7])
        >>> after.sources, after.targets
        (array([0, 0, 2, 2]), array([0, 7, 0, 5]))
        >>> change.origin, order
        (array([ 0, -1,  2, -1]), array([1, 0]))
        """
        gone = check_indices("drop", drop, self.nnz)
        source = check_indices("sources", sources, self.shape[0])
        target = check_indices("targets", targets, self.shape[1])
        if target.size != source.size:
            raise ArgumentError("targets", f"{source.size} indices, as many as sources", target.size)
        keep = np.ones(self.nnz, dtype=bool)
        keep[gone] = False
        kept = int(np.count_nonzero(keep))
        if kept + gone.size != self.nnz:
            raise ArgumentError("drop", "each position once", f"{gone.size} positions, some twice")
        order = canonical_order(source, target, self.shape)
        source, target = source[order], target[order]
        twice = ((source[1:] == source[:-1]) & (target[1:] == target[:-1])).any()
        nnz, neurons = kept + source.size, min(kept, self.by_source.ids.size) + source.size
        new = [np.empty(size + 1, dtype=np.int64) for size in (neurons, neurons, nnz, nnz)]
        stayed = np.zeros(source.size, dtype=bool)
        given = _readable(source), _readable(target), keep_regrown, stayed
        rows, again = merge.merge(*self.by_source, keep, *given, *new)
        if twice or rows < 0:
            # Sorting them all finds and names the edges that would be there twice.
            Edges.from_coo(
                np.append(self.sources[keep], source), np.append(self.targets[keep], target), self.shape
            )
        ids, starts, others, origin = new
        grouped = Compressed(
            _fixed(ids[:rows].copy()), _fixed(starts[: rows + 1].copy()), _fixed(others[:-1])
        )
        change = Change(origin[:-1], self.nnz, int(again))
        return Edges._of(grouped, self.shape), change, order[~stayed] if keep_regrown else order

    def without(self, drop: Any) -> Edges:
        """Return these edges without those at the given positions; raises as `rewired` does.

        Examples
        --------
        >>> from gbnn.edges import Edges
        >>> Edges.from_coo([0, 1, 2], [0, 0, 0], (3, 1))[0].without([1]).sources
        array([0, 2])
        """
        return self.rewired(drop, (), ())[0]
