"""`Edges`, where the edges of one layer go, and `Change`, what a rewiring did to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_int

__all__ = ["MAX_FEATURES", "Change", "Compressed", "Edges", "check_indices", "check_shape", "shape_of"]

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


def _order(majors: Array, minors: Array, shape: tuple[int, int]) -> Array:
    """Return the permutation that sorts edges by (major, minor).

    One combined key sorts about ten times faster than two keys (NumPy's vectorised sort); it exists
    as long as the product of the dimensions fits an int64.
    """
    if shape[0] * shape[1] < 2**63:
        return np.argsort(majors * shape[1] + minors)
    return np.lexsort((minors, majors))


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
        order = _order(source, target, shape)
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

    @cached_property
    def order(self) -> Array:
        """The permutation from canonical order to order by (target, source), int64, shape (nnz,)."""
        return _order(self.targets, self.sources, (self.shape[1], self.shape[0]))

    @cached_property
    def by_target(self) -> Compressed:
        """The same edges grouped by target; its edge k is canonical edge `order[k]`."""
        return _compress(self.targets[self.order], self.sources[self.order])

    @property
    def nbytes(self) -> int:
        """Bytes of the indices; the view by target, made when a product asks, takes twice as many more."""
        return sum(a.nbytes for a in self.by_source)

    def fans(self) -> tuple[Array, Array]:
        """Return for each edge how many edges enter its target and how many leave its source, (nnz,) each."""
        into, out_of = np.diff(self.by_target.starts), np.diff(self.by_source.starts)
        fan_in = np.empty(self.nnz, dtype=np.int64)
        fan_in[self.order] = np.repeat(into, into)
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
        result = np.full(len(sources), -1, dtype=np.int64)
        ids, starts, others = self.by_source
        if not ids.size or not result.size:
            return result
        row = np.minimum(np.searchsorted(ids, sources), ids.size - 1)
        known = np.flatnonzero(ids[row] == sources)
        low, high = starts[row[known]], starts[row[known] + 1]
        wanted, end = targets[known], high.copy()
        # Bisection in all rows at once: as many rounds as the longest row has bits.
        for _ in range(int((high - low).max(initial=1)).bit_length()):
            middle = np.minimum((low + high) // 2, self.nnz - 1)
            less = (others[middle] < wanted) & (low < high)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        hit = (low < end) & (others[np.minimum(low, self.nnz - 1)] == wanted)
        result[known[hit]] = low[hit]
        return result


@dataclass(frozen=True)
class Change:
    """What a rewiring did to a layer: which old edges went where, and which edges are new.

    Parameters
    ----------
    origin : ndarray of int64, shape (new nnz,)
        The old position of each edge, in the new canonical order; -1 for an edge that is new.
    before : int
        Number of edges before.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Change
    >>> change = Change(np.array([0, -1, 2]), before=3)
    >>> change.carry(np.array([10.0, 11.0, 12.0]))
    array([10.,  0., 12.])
    >>> change.dropped, change.grown
    (1, 1)
    """

    origin: Array
    before: int

    @property
    def grown(self) -> int:
        """Number of edges that are new."""
        return int(np.count_nonzero(self.origin < 0))

    @property
    def dropped(self) -> int:
        """Number of old edges that are gone."""
        return self.before - (self.origin.size - self.grown)

    @property
    def new(self) -> Array:
        """Positions of the new edges in the new order, int64."""
        return np.flatnonzero(self.origin < 0)

    def carry(self, array: Array, fill: Any = 0) -> Array:
        """Move a per-edge array to the new order.

        Parameters
        ----------
        array : ndarray, shape (old nnz, ...)
        fill : scalar, or array of shape (grown, ...)
            What new edges get, in the new order.

        Returns
        -------
        ndarray, shape (new nnz, ...)

        Raises
        ------
        ArgumentError
            If the array is not per edge, or `fill` not per new edge.
        """
        if array.ndim < 1 or array.shape[0] != self.before:
            raise ArgumentError("array", f"one entry for each of {self.before} edges", array.shape)
        result = np.empty((self.origin.size, *array.shape[1:]), dtype=array.dtype)
        old = self.origin >= 0
        result[old] = array[self.origin[old]]
        try:
            result[~old] = fill
        except ValueError:
            each = f"a scalar or one entry for each of {self.grown} new edges"
            raise ArgumentError("fill", each, f"shape {np.shape(fill)}") from None
        return result
