"""`Weights`, the graph of one layer with its values, and `Change`, what a rewiring did to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import graphblas as gb
import numpy as np
from graphblas.core.matrix import TransposedMatrix

from gbnn import convert, storage
from gbnn.convert import cast, real_dtype
from gbnn.edges import Change, Edges, check_indices
from gbnn.errors import ArgumentError, KindError, check_finite, check_real

__all__ = ["Change", "Pending", "Weights", "real_dtype"]

Array = np.ndarray[Any, Any]
Pending = Callable[[Array, Array | None], None]
"""What a lazy optimizer still owes some edges: ``pending(values, positions)`` brings those of `values` (all,
for None) up to date in place, and what the optimizer keeps of them."""


class Weights:
    """The weighted graph of one layer: entry (i, j) is the edge from input neuron i to output neuron j.

    Parameters
    ----------
    edges : Edges
        Where the edges go.
    values : ndarray, shape (nnz,), float32 or float64
        One value an edge, in the order of `edges` (by source, then by target). Kept, not copied.

    Notes
    -----
    `values` is read-only: change it by `assign`, `add` or `add_at`, so that the view by target follows.
    Memory is O(nnz): nothing of size in x out, nor of size in or out, is ever made.

    A lazy optimizer leaves edges that a batch did not touch for later (`pending`). Whatever reads or changes
    the weights brings them up to date first, so nobody sees the difference; only `raw` does not, and an array
    that `values` gave before a training step shows what that step did only once `values` is read again.

    Examples
    --------
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 2, 2], [1, 0, 1], [0.5, 1.0, -1.0], shape=(3, 2))
    >>> w
    Weights(3 x 2, nnz=3, density=0.5, float32)
    >>> w.to_dense()
    array([[ 0. ,  0.5],
           [ 0. ,  0. ],
           [ 1. , -1. ]], dtype=float32)
    """

    def __init__(self, edges: Edges, values: Array) -> None:
        if not isinstance(values, np.ndarray):
            raise KindError("values", "a NumPy array", type(values).__name__)
        real_dtype("values", values.dtype)
        if values.shape != (edges.nnz,):
            raise ArgumentError("values", f"shape ({edges.nnz},), one an edge", values.shape)
        self._edges = edges
        self._values = np.require(values, requirements=["C", "A"])
        self.lock = threading.RLock()  # of who settles, or writes what others may be settling
        self._reset_views()

    def _reset_views(self) -> None:
        self._version = 0  # counts changes of what the values are: settling is none
        self._writes = 0  # counts writes to them
        self._target_writes = -1  # the count at which the view by target was last right
        self._pending: Pending | None = None
        self._target_values: Array | None = None
        self._by_source: TransposedMatrix | None = None
        self._by_target: TransposedMatrix | None = None

    # A copy or a pickle is made of the arrays; the views are loans of this process's memory.
    def __getstate__(self) -> dict[str, Any]:
        return {"sources": self.sources, "targets": self.targets, "shape": self.shape, "values": self.values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._edges = Edges(state["sources"], state["targets"], state["shape"])
        self._values = state["values"].copy()
        self.lock = threading.RLock()  # of who settles, or writes what others may be settling
        self._reset_views()

    # -- From and to other forms ---------------------------------------------------------------------------

    @classmethod
    def from_coo(
        cls, sources: Any, targets: Any, values: Any, shape: tuple[int, int], *, dtype: Any = np.float32
    ) -> Weights:
        """Build from coordinates in any order.

        Parameters
        ----------
        sources, targets : array_like of int, shape (nnz,)
        values : array_like of float, shape (nnz,), or a scalar for all
        shape : (int, int)
            in_features, out_features.
        dtype : dtype
            float32 or float64.

        Raises
        ------
        ArgumentError, KindError, NonFiniteError
            On duplicates, indices out of range, NaN or infinite values, shapes that are not from 1 to 2**60.
        """
        kind = real_dtype("dtype", dtype)
        edges, order = Edges.from_coo(sources, targets, shape)
        array = cast(check_real("values", values), kind)
        if array.ndim == 0:
            array = np.full(edges.nnz, array, dtype=kind)
        if array.shape != (edges.nnz,):
            raise ArgumentError("values", f"{edges.nnz} values, one an edge", array.shape)
        check_finite("values", array)
        return cls(edges, array[order])

    @classmethod
    def from_scipy(cls, matrix: Any, *, dtype: Any = None) -> Weights:
        """Build from a SciPy sparse matrix or array of any format, shape (in, out); stored zeros are edges.

        `dtype` None keeps float64 and turns anything else into float32. Raises as `from_coo` does.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from gbnn.weights import Weights
        >>> Weights.from_scipy(sp.eye_array(4, format="csr")).nnz
        4
        """
        given = convert.of_scipy(matrix)
        return cls.from_coo(*given, dtype=given.dtype if dtype is None else dtype)

    @classmethod
    def from_dense(cls, array: Any, *, threshold: float = 0.0, dtype: Any = None) -> Weights:
        """Build from a 2-D array, shape (in, out): entries with absolute value above `threshold` are edges.

        Examples
        --------
        >>> from gbnn.weights import Weights
        >>> Weights.from_dense([[0.0, 2.0], [0.1, -3.0]], threshold=0.5).to_coo()[:2]
        (array([0, 1]), array([1, 1]))
        """
        given = convert.of_dense(array, threshold, dtype)
        return cls.from_coo(*given, dtype=given.dtype)

    @classmethod
    def from_graphblas(cls, matrix: gb.Matrix, *, dtype: Any = None) -> Weights:
        """Build from a `graphblas.Matrix` (or its `.T`), shape (in, out); its stored entries are the edges.

        Examples
        --------
        >>> import graphblas as gb
        >>> from gbnn.weights import Weights
        >>> Weights.from_graphblas(gb.Matrix.from_coo([0], [2**59], 1.5, nrows=1, ncols=2**60)).nnz
        1
        """
        given = convert.of_graphblas(matrix)
        return cls.from_coo(*given, dtype=given.dtype if dtype is None else dtype)

    def to_coo(self) -> tuple[Array, Array, Array]:
        """Return copies of sources, targets (int64) and values, each of shape (nnz,)."""
        return self.sources, self.targets.copy(), self.values.copy()

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.csr_array` of shape (in, out); it takes O(nnz + in) memory."""
        return convert.to_scipy(self._edges, self.values)

    def to_dense(self) -> Array:
        """Return a 2-D array, shape (in, out), zero where there is no edge (for small layers)."""
        return convert.to_dense(self._edges, self.values)

    def to_graphblas(self) -> gb.Matrix:
        """Return a `graphblas.Matrix` of its own memory, shape (in, out)."""
        return convert.to_graphblas(self._edges, self.values)

    # -- What it is ----------------------------------------------------------------------------------------

    @property
    def edges(self) -> Edges:
        """Where the edges go."""
        return self._edges

    @property
    def shape(self) -> tuple[int, int]:
        """in_features, out_features."""
        return self._edges.shape

    @property
    def in_features(self) -> int:
        """Number of input neurons."""
        return self.shape[0]

    @property
    def out_features(self) -> int:
        """Number of output neurons."""
        return self.shape[1]

    @property
    def nnz(self) -> int:
        """Number of edges."""
        return self._edges.nnz

    @property
    def density(self) -> float:
        """Edges as a share of all in x out places."""
        return self.nnz / (self.in_features * self.out_features)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        kind: np.dtype[Any] = self._values.dtype
        return kind

    @property
    def values(self) -> Array:
        """Values of the edges in canonical order, shape (nnz,), read-only; all are settled first."""
        self.settle()
        return self.raw

    @property
    def raw(self) -> Array:
        """The values as they lie in memory, shape (nnz,), read-only: right only for edges that are settled.

        For products over few edges: ``weights.settle(positions)``, then read ``weights.raw[positions]``.
        """
        view = self._values.view()
        view.flags.writeable = False
        return view

    @property
    def sources(self) -> Array:
        """Source of each edge, int64, shape (nnz,)."""
        return self._edges.sources

    @property
    def targets(self) -> Array:
        """Target of each edge, int64, shape (nnz,)."""
        return self._edges.targets

    @property
    def nbytes(self) -> int:
        """Bytes of indices and values; the view by target, made by the first product, is extra."""
        return self._edges.nbytes + self._values.nbytes

    def fan_in(self) -> tuple[Array, Array]:
        """Return the targets that have edges (ascending) and how many each has."""
        ids, starts, _ = self._edges.by_target
        return ids, np.diff(starts)

    def fan_out(self) -> tuple[Array, Array]:
        """Return the sources that have edges (ascending) and how many each has."""
        ids, starts, _ = self._edges.by_source
        return ids, np.diff(starts)

    def __repr__(self) -> str:
        size = f"{self.in_features} x {self.out_features}"
        return f"Weights({size}, nnz={self.nnz}, density={self.density:.3g}, {self.dtype})"

    # -- Values --------------------------------------------------------------------------------------------

    def assign(self, values: Any) -> None:
        """Set the values: an array of shape (nnz,) in canonical order, or a scalar."""
        array = check_real("values", values)
        if array.shape not in ((), (self.nnz,)):
            raise ArgumentError("values", f"{self.nnz} values, one an edge, or a scalar", array.shape)
        self.settle()
        self._values[...] = array
        self._changed()

    def add(self, update: Array) -> None:
        """Add an array of shape (nnz,) to the values, in place."""
        array = check_real("update", update)
        if array.shape != (self.nnz,):
            raise ArgumentError("update", f"{self.nnz} values, one an edge", array.shape)
        self.settle()
        self._values += array
        self._changed()

    def add_at(self, positions: Any, update: Any) -> None:
        """Add to the values of some edges, in place and in O(k).

        Parameters
        ----------
        positions : array_like of int, shape (k,)
            The edges, each at most once, in any order.
        update : array_like, shape (k,), or scalar

        Raises
        ------
        ArgumentError, KindError
            On positions out of range, or another number of updates.

        Examples
        --------
        >>> from gbnn.weights import Weights
        >>> w = Weights.from_coo([0, 1, 2], [0, 0, 0], [1.0, 2.0, 3.0], shape=(3, 2))
        >>> w.add_at([0, 2], [0.5, -1.0])
        >>> w.values
        array([1.5, 2. , 2. ], dtype=float32)
        """
        at, array = self._some("update", positions, update)
        self._settle(at)
        self._values[at] += array
        self._changed()

    def assign_at(self, positions: Any, values: Any) -> None:
        """Set the values of some edges, in place and in O(k); arguments and errors as of `add_at`.

        Examples
        --------
        >>> from gbnn.weights import Weights
        >>> w = Weights.from_coo([0, 1, 2], [0, 0, 0], [1.0, 2.0, 3.0], shape=(3, 2))
        >>> w.assign_at([2], 9.0)
        >>> w.values
        array([1., 2., 9.], dtype=float32)
        """
        at, array = self._some("values", positions, values)
        self._settle(at)  # what an optimizer keeps of these edges goes on from here
        self._values[at] = array
        self._changed()

    def write(
        self, change: Callable[[Array], Any], positions: Array | None = None, *, settled: Any = None
    ) -> None:
        """Let a function write to the values of some edges: the compiled step of an optimizer.

        Parameters
        ----------
        change : callable
            ``change(values)``: it writes to the array of values, shape (nnz,), at `positions`.
        positions : ndarray of int64, shape (k,), optional
            Edges there are, each once; all, if None. They are brought up to date first, and not checked.
        settled : (int, int), optional
            The `stamp` at which they were brought up to date; while it is the stamp, that still holds.

        Examples
        --------
        >>> import numpy as np
        >>> from gbnn.weights import Weights
        >>> w = Weights.from_coo([0, 1], [0, 0], [1.0, 2.0], shape=(2, 2))
        >>> w.write(lambda values: np.negative(values, out=values))
        >>> w.values
        array([-1., -2.], dtype=float32)
        """
        if settled is None or settled != self.stamp or positions is None:
            self._settle(positions)
        try:
            change(self._values)
        finally:
            self._changed()

    def _some(self, where: str, positions: Any, numbers: Any) -> tuple[Array, Array]:
        at = check_indices("positions", positions, self.nnz)
        array = check_real(where, numbers)
        if array.shape not in ((), at.shape):
            raise ArgumentError(where, f"{at.size} values, one for each edge, or a scalar", array.shape)
        return at, array

    def _changed(self) -> None:
        self._version += 1
        self._writes += 1

    def astype(self, dtype: Any) -> Weights:
        """Return the same edges with values of another dtype (float32 or float64); always a copy."""
        return Weights(self._edges, self.values.astype(real_dtype("dtype", dtype)))

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes whenever the edges or their values do (settling is no change): a pullback checks it."""
        return id(self._edges), self._version

    # -- What a lazy optimizer owes ------------------------------------------------------------------------

    @property
    def pending(self) -> Pending | None:
        """What a lazy optimizer still owes the edges; None where all are up to date.

        To set it settles what was owed before. It is None again once all edges have been settled.
        """
        return self._pending

    @pending.setter
    def pending(self, owed: Pending | None) -> None:
        with self.lock:
            self.settle()
            self._pending = owed

    def settle(self, positions: Any = None) -> None:
        """Bring edges up to date, in place; nothing happens where nothing is pending.

        Parameters
        ----------
        positions : array_like of int, shape (k,), optional
            The edges, in any order; all, if None.

        Raises
        ------
        ArgumentError, KindError
            On positions out of range, where something is pending.

        Examples
        --------
        >>> from gbnn.weights import Weights
        >>> w = Weights.from_coo([0, 1], [0, 0], [1.0, 2.0], shape=(2, 2))
        >>> def halve(values, positions):  # an optimizer that owes every edge a decay by half
        ...     values[slice(None) if positions is None else positions] *= 0.5
        >>> w.pending = halve
        >>> w.raw.tolist(), w.values.tolist()
        ([1.0, 2.0], [0.5, 1.0])
        """
        if self._pending is not None:
            self._settle(None if positions is None else _inside(positions, self.nnz))

    def _settle(self, positions: Array | None) -> None:
        with self.lock:
            if self._pending is not None:  # another thread may have settled all meanwhile
                self._pending(self._values, positions)
                self._writes += 1
                if positions is None:
                    self._pending = None

    # -- Views for products --------------------------------------------------------------------------------

    @property
    def values_by_target(self) -> Array:
        """Values in the order of `edges.by_target`, read-only by contract; brought up to date when asked."""
        with self.lock:
            self.settle()
            if self._target_values is None:
                self._target_values = np.empty_like(self._values)
            if self._target_writes != self._writes:
                # mode="clip" lets NumPy write straight into `out`; nothing clips, for these are positions.
                np.take(self._values, self._edges.order, out=self._target_values, mode="clip")
                self._target_writes = self._writes
            return self._target_values

    @property
    def by_target(self) -> TransposedMatrix:
        """W as GraphBLAS reads it for `X @ W`: shape (in, out), compressed by target; lent, read-only."""
        with self.lock:
            values = self.values_by_target
            if self._by_target is None:
                self._by_target = storage.lend_columns(*self._edges.by_target, values, self.shape)
            return self._by_target

    @property
    def by_source(self) -> TransposedMatrix:
        """W transposed, for `dY @ W.T`: shape (out, in), compressed by source; lent, read-only."""
        with self.lock:
            self.settle()
            if self._by_source is None:
                shape = (self.out_features, self.in_features)
                self._by_source = storage.lend_columns(*self._edges.by_source, self._values, shape)
            return self._by_source

    # -- Rewiring ------------------------------------------------------------------------------------------

    def rewire(
        self, drop: Any, sources: Any, targets: Any, values: Any = 0.0, *, keep_regrown: bool = False
    ) -> Change:
        """Drop edges and add others, in place; the new order and what became of the old edges comes back.

        Parameters
        ----------
        drop : array_like of int, shape (d,)
            Positions of the edges to drop.
        sources, targets : array_like of int, shape (g,)
            Edges to add, in any order; in canonical order they need no sorting. One that stays is an error.
        values : array_like, shape (g,), or scalar
            Values of the added edges.
        keep_regrown : bool
            Whether an edge that is dropped and added in the same call keeps its value and all that is carried
            with it, or is a new edge. `Change.regrown` counts them.

        Returns
        -------
        Change

        Raises
        ------
        ArgumentError, KindError, NonFiniteError
            On positions out of range or given twice, edges out of range, edges that exist already, and values
            that are not finite; the weights are then as they were.

        Examples
        --------
        >>> from gbnn.weights import Weights
        >>> w = Weights.from_coo([0, 1, 2], [0, 0, 0], [1.0, 2.0, 3.0], shape=(3, 2))
        >>> change = w.rewire(drop=[1], sources=[0], targets=[1])
        >>> w.sources, w.targets, w.values
        (array([0, 0, 2]), array([0, 1, 0]), array([1., 0., 3.], dtype=float32))
        >>> change.origin
        array([ 0, -1,  2])
        """
        edges, change, order = self._edges.rewired(drop, sources, targets, keep_regrown=keep_regrown)
        added = cast(check_real("values", values), self.dtype)
        if added.shape not in ((), (np.size(sources),)):
            each = f"{np.size(sources)} values, one for each new edge, or a scalar"
            raise ArgumentError("values", each, added.shape)
        check_finite("values", added)
        self.move(edges, change, added[order] if added.ndim else added)
        return change

    def move(self, edges: Edges, change: Change, values: Any = 0.0) -> None:
        """Take the edges that `Edges.rewired` has made of the present ones, and its `Change`.

        Parameters
        ----------
        edges : Edges
        change : Change
        values : ndarray, shape (change.grown,), or scalar
            Values of the new edges, in the new order.

        Raises
        ------
        ArgumentError
            If they do not belong together, or to these weights.

        Examples
        --------
        >>> from gbnn.weights import Weights
        >>> w = Weights.from_coo([0, 1, 2], [0, 0, 0], [1.0, 2.0, 3.0], shape=(3, 2))
        >>> edges, change, _ = w.edges.rewired([1], [0], [1])
        >>> w.move(edges, change, 5.0)
        >>> w.values
        array([1., 5., 3.], dtype=float32)
        """
        if edges.shape != self.shape or edges.nnz != change.origin.size:
            raise ArgumentError("edges", f"{change.origin.size} edges of {self.shape}", repr(edges.shape))
        self._values = change.carry(self.values, values)
        self._edges = edges
        version = self._version + 1
        self._reset_views()
        self._version = version


def _inside(positions: Any, size: int) -> Array:
    """Return positions that are all in range; `check_indices` makes a copy, in several passes."""
    if isinstance(positions, np.ndarray) and positions.dtype == np.int64 and positions.ndim == 1:
        # As unsigned numbers, negative ones are the largest of all.
        bits = np.ascontiguousarray(positions).view(np.uint64)
        if not bits.size or int(bits.max()) < size:
            return positions
    return check_indices("positions", positions, size)
