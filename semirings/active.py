"""The product with a batch of sparse rows, and its pullback: both cost what the active edges cost."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numba
import numpy as np

from gbnn.lookup import Lookup
from gbnn.rows import SparseRows
from gbnn.semirings import active_kernels as loops
from gbnn.semirings.kernels import by_neuron, start
from gbnn.weights import Weights

if TYPE_CHECKING:
    from gbnn.semirings.semiring import Semiring

__all__ = ["Active", "Form", "dense_or_sparse"]

Array = np.ndarray[Any, Any]
Form = Literal["auto", "dense", "sparse"]
"""What the output of a product with sparse rows is to be."""

DIRECT = 2**16
"""Outputs that are their own numbers, however few are reached."""
SMALL = 2**17
"""Outputs of a batch up to which a dense one costs about as little as the call."""
FILLED = 0.1
"""Active edges an output from which it is made dense: about a tenth of the outputs are reached then."""
LARGEST = 2**31
"""Outputs of a batch that are not made dense by themselves."""


class Active:
    """The edges that a batch of sparse rows makes active, as a small graph of their own.

    Its sources are the active neurons that have edges, under numbers of their own; so are its targets, where
    the layer is much wider than the edges are many. What a product does is done there: it looks at nothing
    of the size of the layer, nor of all its edges.

    Parameters
    ----------
    x : SparseRows, shape (batch, in)
    weights : Weights, shape (in, out)
        Lazy ones are brought up to date at the active edges.

    Attributes
    ----------
    dtype : dtype
        That of the weights.
    ids : ndarray of int64 or None
        The neurons that the targets' numbers stand for; None where they stand for themselves.
    """

    def __init__(self, x: SparseRows, weights: Weights) -> None:
        self.x, self.out, self.nnz = x, weights.out_features, weights.nnz
        _, self._all_starts, all_targets = weights.edges.by_source
        self._sources = weights.edges.source_lookup.find(x.columns)
        some = np.flatnonzero(self._sources >= 0)
        fans, sources = np.zeros(x.nnz, dtype=np.int64), self._sources[some]
        fans[some] = self._all_starts[sources + 1] - self._all_starts[sources]
        self._at = np.append(0, np.cumsum(fans))
        if weights.pending is not None:
            weights.settle(self.positions)
        self.ids: Array | None = None
        # How the loops begin: the batch, where each source's edges begin, and then their targets and values.
        if self.out <= DIRECT + 8 * self.count:
            found, edges = self._sources, (self._all_starts, all_targets, all_targets, weights.raw)
        else:
            found, edges = self._numbers, self._small(all_targets, weights.raw)
        self.dtype = weights.dtype
        self._batch = _read_only(x.starts, found, x.values)
        self._edges = _read_only(*edges, self._at)

    def _small(self, all_targets: Array, values: Array) -> tuple[Array, Array, Array, Array]:
        """Copy the active edges; their targets get numbers, for there are many more outputs than these."""
        targets = all_targets[self.positions]
        ordered = np.sort(targets)
        ids = ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
        self.ids, self._lookup = ids, Lookup(ids)
        return self._ends, targets, self._lookup.find(targets), values[self.positions]

    @cached_property
    def _by_source(self) -> tuple[Array, Array, Array]:
        """Return the entries that have edges, grouped by source, where groups begin, and their sources."""
        some = np.flatnonzero(self._sources >= 0)
        bits = max(self._sources.size - 1, 0).bit_length()
        # One number an entry, source before place: sorting numbers is faster than finding their order.
        keys = np.sort((self._sources[some] << bits) | some)
        entries, sources = keys & ((1 << bits) - 1), keys >> bits
        first = np.flatnonzero(np.diff(sources, prepend=-1))
        return entries, np.append(first, sources.size), sources[first]

    @cached_property
    def _numbers(self) -> Array:
        """The number of each entry's source among the active ones, or -1."""
        entries, groups, _ = self._by_source
        numbers = np.full(self._sources.size, -1, dtype=np.int64)
        numbers[entries] = np.repeat(np.arange(groups.size - 1), np.diff(groups))
        return numbers

    @cached_property
    def _ends(self) -> Array:
        """Where the edges of each active source begin and end in `positions`."""
        _, _, sources = self._by_source
        return np.append(0, np.cumsum(self._all_starts[sources + 1] - self._all_starts[sources]))

    @cached_property
    def positions(self) -> Array:
        """The position of every edge of an active source, ascending, int64, shape (t,)."""
        _, _, sources = self._by_source
        shift = self._all_starts[sources] - self._ends[:-1]
        return np.repeat(shift, np.diff(self._ends)) + np.arange(self._ends[-1])

    @property
    def count(self) -> int:
        """Number of active edges; one that several rows make active counts for each."""
        return int(self._at[-1])

    # -- Forward ---------------------------------------------------------------------------------------------

    def into_dense(self, s: Semiring, y: Array) -> None:
        """Add the terms of the active edges to a dense output, shape (batch, out), Fortran order."""
        starts, columns, _, values, _ = self._edges
        if not s.ordinary:
            start(s.loops.into_dense, self.count, *self._batch, starts, columns, values, y.T)
            return
        rows = np.ascontiguousarray(y)
        start(loops.into_dense, self.count, *self._batch, starts, columns, values, rows)
        y[...] = rows

    def into_rows(self, s: Semiring) -> tuple[SparseRows, Array]:
        """Return the output where active edges reach, and the number of each entry's neuron."""
        starts, _, ranks, values, at = self._edges
        reached, y = np.empty(self.count, dtype=np.int64), np.empty(self.count, dtype=values.dtype)
        counts = np.empty(self.x.shape[0], dtype=np.int64)
        loop = loops.into_rows if s.ordinary else s.loops.into_rows
        given = *self._batch, starts, ranks, values, at, *self._scratch(), reached, y, counts
        start(loop, self.count, *given)
        # What rows did not need of the room for their active edges is closed up.
        begins, ends = self._at[self.x.starts[:-1]], np.append(0, np.cumsum(counts))
        keep = np.repeat(begins - ends[:-1], counts) + np.arange(ends[-1])
        reached = reached[keep]
        columns = reached if self.ids is None else self.ids[reached]
        return SparseRows(ends, columns, y[keep], (self.x.shape[0], self.out)), reached

    # -- Backward --------------------------------------------------------------------------------------------

    def pull(
        self, s: Semiring, y: Array | SparseRows, dy: Array | SparseRows, reached: Array | None, inputs: bool
    ) -> tuple[Array, Array]:
        """Return the gradient of the edges at `positions`, and dx of each active entry.

        `reached` are the numbers of y's neurons, or None where y is dense; where y is sparse, dy has its
        pattern.
        """
        starts, columns, _, values, at = self._edges
        _, found, x = self._batch
        dw, dx = np.empty(self._ends[-1], dtype=self.dtype), np.zeros(self.x.nnz, dtype=self.dtype)
        entries, groups, dw_at = _read_only(*self._by_source[:2], self._ends)
        if s.ordinary and isinstance(dy, np.ndarray):
            (rows,) = _read_only(np.ascontiguousarray(dy))
            given = entries, groups, self.x.rows, found, x, starts, columns, values, rows, dw_at
            start(loops.pull_dense, self.count, *given, dw, dx, inputs)
            return dw, dx
        begin = entries, groups, found, x, starts, values, at
        g = self._at_edges(dy, reached)
        if s.ordinary:
            start(loops.pull, self.count, *begin, g, dw_at, dw, dx, inputs)
        else:
            start(s.loops.pull, self.count, *begin, self._at_edges(y, reached), g, dw_at, dw, dx, inputs)
        return dw, dx

    def _at_edges(self, y: Array | SparseRows, reached: Array | None) -> Array:
        """Return what is known of the outputs at each active edge."""
        starts, columns, ranks, values, at = self._edges
        x_starts, found, _ = self._batch
        g = np.empty(self.count, dtype=values.dtype)
        if isinstance(y, np.ndarray):
            start(loops.gather_dense, self.count, x_starts, found, starts, columns, at, by_neuron(y), g)
            return g
        if reached is None:
            reached = y.columns if self.ids is None else self._lookup.find(y.columns)
        given = x_starts, found, starts, ranks, at, *self._scratch(), *_read_only(y.starts, reached, y.values)
        start(loops.gather_rows, self.count, *given, g)
        return g

    def shared(
        self,
        s: Semiring,
        y: Array | SparseRows,
        dy: Array | SparseRows,
        reached: Array | None,
        bias: Array | None,
    ) -> Array | SparseRows:
        """Return dy divided by how many active edges (and the bias) give the output of a selective ⊕."""
        starts, columns, ranks, values, at = self._edges
        y_at = self._at_edges(y, reached)
        if isinstance(dy, np.ndarray):
            count: Array = np.zeros(dy.shape, dtype=dy.dtype, order="F")
            if bias is not None:
                count += y == bias
            given = *self._batch, starts, columns, values, at, y_at, count.T
            start(s.loops.count_into_dense, self.count, *given)
            return np.asfortranarray(dy / np.maximum(count, 1))
        count = np.zeros(dy.nnz, dtype=dy.dtype)
        acc, _ = self._scratch()
        given = *self._batch, starts, ranks, values, at, y_at, acc, *_read_only(dy.starts, reached), count
        start(s.loops.count_into_rows, self.count, *given)
        return dy.with_values(dy.values / np.maximum(count, 1))

    def _scratch(self) -> tuple[Array, Array]:
        """Return a number, and a bit that is 0, for each target, for each thread."""
        size = self.out if self.ids is None else self.ids.size
        threads = int(vars(numba.config)["NUMBA_NUM_THREADS"])
        marks = np.zeros((threads, size // 64 + 1), dtype=np.uint64)
        return np.empty((threads, size), dtype=self.dtype), marks


def _read_only(*arrays: Any) -> list[Array]:
    """Return views that cannot be written: numba compiles once for arrays that can and once for others."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return views


def dense_or_sparse(form: Form, active: Active, *, bias: bool) -> str:
    """Return the form of an output: dense if asked for, if a bias fills it, or if it fills anyway."""
    if form != "auto":
        return form
    outputs = active.x.shape[0] * active.out
    if bias or outputs <= SMALL:
        return "dense"
    return "dense" if active.count >= FILLED * outputs and outputs <= LARGEST else "sparse"
