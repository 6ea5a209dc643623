"""The product with a batch of sparse rows, and its pullback: both cost what the active edges cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numba
import numpy as np

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

SMALL = 2**17
"""Outputs of a batch up to which a dense one costs about as little as the call."""
FILLED = 0.1
"""Active edges an output from which a dense output is the faster one (`benchmarks/active.py`)."""
LARGEST = 2**31
"""Outputs of a batch that are not made dense by themselves."""


class Active:
    """A batch of sparse rows over a layer's edges: which of them are active.

    Parameters
    ----------
    x : SparseRows, shape (batch, in)
    weights : Weights, shape (in, out)
        Lazy ones are brought up to date at the active edges.

    Attributes
    ----------
    found : ndarray of int64, shape (x.nnz,)
        Which of the neurons that have edges each active entry is at, or -1.
    at : ndarray of int64, shape (x.nnz + 1,)
        The number of the first active edge of each entry; the last is how many there are.
    """

    def __init__(self, x: SparseRows, weights: Weights) -> None:
        self.x, self.edges = x, weights.edges
        _, starts, _ = self.edges.by_source
        self.found = self.edges.source_lookup.find(x.columns)
        fans = np.zeros(x.nnz, dtype=np.int64)
        some = np.flatnonzero(self.found >= 0)
        sources = self.found[some]
        fans[some] = starts[sources + 1] - starts[sources]
        self.at = np.zeros(x.nnz + 1, dtype=np.int64)
        np.cumsum(fans, out=self.at[1:])
        if weights.pending is not None:
            weights.settle(self.positions)
        self.values = weights.raw
        self._at, *self._rows = _read_only(self.at, x.starts, self.found, x.values)

    @property
    def count(self) -> int:
        """Number of active edges; one that several rows make active counts for each."""
        return int(self.at[-1])

    @cached_property
    def _by_source(self) -> tuple[Array, Array]:
        """The entries that have edges, grouped by source, and where each group begins and ends."""
        size = self.found.size
        bits = max(size - 1, 0).bit_length()
        # One number an entry, source before place: sorting numbers is faster than finding their order.
        keys = np.sort((self.found[self.found >= 0] << bits) | np.flatnonzero(self.found >= 0))
        entries, sources = keys & ((1 << bits) - 1), keys >> bits
        first = np.flatnonzero(np.diff(sources, prepend=-1))
        return entries, np.append(first, sources.size)

    @cached_property
    def _touched(self) -> tuple[Array, Array]:
        """The position of every edge of an active source, ascending, and where those of each source begin."""
        entries, groups = self._by_source
        _, starts, _ = self.edges.by_source
        sources = self.found[entries[groups[:-1]]]
        fans = starts[sources + 1] - starts[sources]
        ends = np.append(0, np.cumsum(fans))
        return np.repeat(starts[sources] - ends[:-1], fans) + np.arange(ends[-1]), ends

    @property
    def positions(self) -> Array:
        """The position of every edge of an active source, ascending, int64."""
        return self._touched[0]

    # -- Forward ---------------------------------------------------------------------------------------------

    def into_dense(self, s: Semiring, y: Array) -> None:
        """Add the terms of the active edges to a dense output, shape (batch, out), Fortran order."""
        _, starts, targets = self.edges.by_source
        given = *self._rows, starts, targets, self.values, y.T
        if s.name == "plus_times":
            start(loops.into_dense, self.count, *given)
        else:
            start(s.loops.into_dense, self.count, *given)

    def into_rows(self, s: Semiring) -> tuple[SparseRows, Array]:
        """Return the output where active edges reach, and for each entry which of `by_target.ids` it is."""
        _, starts, _ = self.edges.by_source
        dtype, batch = self.values.dtype, self.x.shape[0]
        ranks, y = np.empty(self.count, dtype=np.int64), np.empty(self.count, dtype=dtype)
        counts = np.empty(batch, dtype=np.int64)
        given = *self._rows, starts, self.edges.target_ranks, self.values, self._at
        with self._scratch() as (acc, marks):
            more = *given, acc, marks, ranks, y, counts
            if s.name == "plus_times":
                start(loops.into_rows, self.count, *more)
            else:
                start(s.loops.into_rows, self.count, *more)
        # What rows did not need of the room for their active edges is closed up.
        begins, ends = self.at[self.x.starts[:-1]], np.append(0, np.cumsum(counts))
        keep = np.repeat(begins - ends[:-1], counts) + np.arange(ends[-1])
        ranks = ranks[keep]
        columns = self.edges.by_target.ids[ranks]
        return SparseRows(ends, columns, y[keep], (batch, self.edges.shape[1])), ranks

    # -- Backward --------------------------------------------------------------------------------------------

    def pull(
        self, s: Semiring, y: Array | SparseRows, dy: Array | SparseRows, ranks: Array | None, inputs: bool
    ) -> tuple[Array, Array]:
        """Return the gradient of the edges at `positions`, and dx of each active entry.

        `ranks` are those of y's entries, or None where y is dense; where y is sparse, dy has its pattern.
        """
        dtype = self.values.dtype
        _, starts, _ = self.edges.by_source
        entries, groups = self._by_source
        positions, dw_at = self._touched
        dw, dx = np.empty(positions.size, dtype=dtype), np.zeros(self.x.nnz, dtype=dtype)
        _, found, x = self._rows
        given = *_read_only(entries, groups), found, x, starts, self.values, self._at
        made = *_read_only(dw_at), dw, dx, inputs
        g = self._at_edges(dy, ranks)
        if s.name == "plus_times":
            start(loops.pull, self.count, *given, g, *made)
        else:
            start(s.loops.pull, self.count, *given, self._at_edges(y, ranks), g, *made)
        return dw, dx

    def _at_edges(self, y: Array | SparseRows, ranks: Array | None) -> Array:
        """Return what is known of the outputs at each active edge."""
        _, starts, targets = self.edges.by_source
        g = np.empty(self.count, dtype=self.values.dtype)
        x_starts, found, _ = self._rows
        if isinstance(y, np.ndarray):
            start(loops.gather_dense, self.count, x_starts, found, starts, targets, self._at, by_neuron(y), g)
            return g
        if ranks is None:
            ranks = self.edges.target_lookup.find(y.columns)
        with self._scratch() as (acc, marks):
            given = x_starts, found, starts, self.edges.target_ranks, self._at, acc, marks
            start(loops.gather_rows, self.count, *given, *_read_only(y.starts, ranks, y.values), g)
        return g

    def shared(
        self,
        s: Semiring,
        y: Array | SparseRows,
        dy: Array | SparseRows,
        ranks: Array | None,
        bias: Array | None,
    ) -> Array | SparseRows:
        """Return dy divided by how many active edges (and the bias) give the output of a selective ⊕."""
        _, starts, targets = self.edges.by_source
        y_at = self._at_edges(y, ranks)
        given = *self._rows, starts
        if isinstance(dy, np.ndarray):
            count: Array = np.zeros(dy.shape, dtype=dy.dtype, order="F")
            if bias is not None:
                count += y == bias
            start(s.loops.count_into_dense, self.count, *given, targets, self.values, self._at, y_at, count.T)
            return np.asfortranarray(dy / np.maximum(count, 1))
        count = np.zeros(dy.nnz, dtype=dy.dtype)
        with self._scratch() as (acc, _):
            more = self.edges.target_ranks, self.values, self._at, y_at, acc, *_read_only(dy.starts, ranks)
            start(s.loops.count_into_rows, self.count, *given, *more, count)
        return dy.with_values(dy.values / np.maximum(count, 1))

    @contextmanager
    def _scratch(self) -> Iterator[tuple[Array, Array]]:
        """Lend a number and a bit for each neuron that edges enter, for each thread; all bits are 0."""
        room, threads = self.edges.scratch, int(vars(numba.config)["NUMBA_NUM_THREADS"])
        shape = threads, self.edges.by_target.ids.size
        dtype = self.values.dtype
        try:
            acc, marks = room.pop()
        except IndexError:
            acc = marks = np.empty((0, 0))
        if acc.shape != shape or acc.dtype != dtype:
            acc = np.empty(shape, dtype=dtype)
            marks = np.zeros((shape[0], shape[1] // 64 + 1), dtype=np.uint64)
        yield acc, marks
        room.append((acc, marks))  # not after an exception: bits may be left


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
    outputs = active.x.shape[0] * active.edges.shape[1]
    if bias or outputs <= SMALL:
        return "dense"
    return "dense" if active.count >= FILLED * outputs and outputs <= LARGEST else "sparse"
