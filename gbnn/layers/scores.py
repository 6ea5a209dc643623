"""`Scores`: the outputs of a layer of very many labels, computed only where they are asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError, NonFiniteError, check_int
from gbnn.layers import scores_kernels as kernels
from gbnn.layers.layer import Pullback
from gbnn.lookup import Lookup
from gbnn.rows import SparseRows
from gbnn.semirings import TouchedGradient, plus_times
from gbnn.semirings.kernels import start
from gbnn.weights import Weights

__all__ = ["MOST_SCORES", "Scores"]

Array = np.ndarray[Any, Any]

MOST_SCORES = 2**26
"""Most scores `Scores.dense` makes an array of: 256 MB of float32."""

# Labels that a sparse row is scored at in one go: their scores stay in the processor's cache.
_BLOCK = 2**14
# Rows of an array that are scored together: they share each label's edges, and one register holds them.
_ROWS = 16


class Touched(NamedTuple):
    """The labels that occur in a pattern and their edges: what one step looks at."""

    labels: Array  # (d,) ascending
    local: Array  # (entries,) which of them each entry's label is
    starts: Array  # (d + 1,) label k has the touched edges starts[k] up to starts[k + 1]
    sources: Array  # (t,) place in a row of h, of sparse h among the neurons active in the batch
    positions: Array  # (t,) in canonical order of the layer's edges


class Scores:
    """``h W + bias``, shape (batch, labels), of which nothing is computed yet.

    What `ManyLabels` gives: a loss asks for the candidates it wants by `at`, a prediction for the `top` of
    each row, and where there are few labels for all by `dense`.

    Parameters
    ----------
    h : ndarray, Fortran order, or SparseRows, shape (batch, hidden)
    weights : Weights, shape (hidden, labels)
    bias : ndarray, shape (labels,), or None

    Notes
    -----
    It reads the layer's weights when asked: after an update of these, it gives the scores of the updated
    layer.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> from gbnn.layers.head import ManyLabels
    >>> head = ManyLabels.from_dense(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]))
    >>> scores, pullback = head.forward(np.array([[1.0, 1.0], [0.0, 2.0]]))
    >>> scores
    Scores(2 x 3, float64)
    >>> scores.at(([0, 1, 3], [1, 0, 2])).values
    array([ 3.,  0., -2.])
    >>> scores.top(2)
    (array([[1, 0],
           [1, 0]]), array([[3., 1.],
           [2., 0.]]))
    """

    def __init__(self, h: Array | SparseRows, weights: Weights, bias: Array | None) -> None:
        self.h, self.weights, self.bias = h, weights, bias
        self._last: tuple[Array, Touched] | None = None
        self._whole: tuple[Array, Pullback] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(batch, labels)."""
        return len(self.h), self.weights.out_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.weights.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Scores({self.shape[0]} x {self.shape[1]}, {self.dtype})"

    # -- What can be asked -----------------------------------------------------------------------------------

    def at(self, pattern: Any) -> SparseRows:
        """Return the scores of some labels of each row.

        Parameters
        ----------
        pattern : SparseRows, SciPy sparse matrix, graphblas.Matrix, or (starts, columns)
            Shape (batch, labels): which are wanted; its values do not matter. Of a pair, as of `SparseRows`,
            the columns ascend in each row.

        Returns
        -------
        SparseRows
            Of that pattern. A score costs its label's fan-in.

        Raises
        ------
        ArgumentError, KindError
            If the pattern is of another shape, or no pattern.
        """
        starts, columns = self._pattern(pattern)
        touched = self._touched(columns)
        out = np.empty(columns.size, dtype=self.dtype)
        weights, bias = self._settled(touched), self._bias_of(touched.labels)
        read = *self._rows(), starts, touched.local, touched.starts, touched.sources, weights
        kernels.score(*read, bias, out)
        return SparseRows(starts, columns, out, self.shape)

    def dense(self) -> Array:
        """Return all scores, shape (batch, labels), Fortran order; for moderate sizes.

        Raises ArgumentError beyond `MOST_SCORES`, 2**26.
        """
        return self._computed()[0]

    def top(self, k: int) -> tuple[Array, Array]:
        """Return the k labels of the highest scores of each row, and these scores, highest first.

        Of equal scores the smaller label comes first. No row of all scores is ever held: memory is
        O(batch x k), and a block of labels for each thread.

        Parameters
        ----------
        k : int

        Returns
        -------
        labels : ndarray of int64, shape (batch, k)
            -1 where there are fewer than k labels, or scores are -inf.
        scores : ndarray, shape (batch, k)
            -inf there.

        Raises
        ------
        NonFiniteError
            If a score is NaN.
        """
        k = check_int("k", k, 1)
        batch, count = self.shape
        blocks = -(-batch // _ROWS)
        labels = np.full((blocks * _ROWS, k), -1, dtype=np.int64)
        scores = np.full((blocks * _ROWS, k), -np.inf, dtype=self.dtype)
        lost = np.zeros(blocks * _ROWS, dtype=bool)
        bias = np.empty(0, dtype=self.dtype) if self.bias is None else self.bias
        if isinstance(self.h, SparseRows):
            active = self._active()
            work = int((active[2] - active[1]).sum()) + batch * count
            start(kernels.best_of_rows, work, *active, bias, count, _BLOCK, labels, scores, lost)
        else:
            h = np.zeros((blocks, self.h.shape[1], _ROWS), dtype=self.dtype)
            for b in range(batch):
                h[b // _ROWS, :, b % _ROWS] = self.h[b]
            read = *self.weights.edges.by_target, self.weights.values_by_target, bias, count
            start(kernels.best_of_array, batch * self.weights.nnz, h, *read, labels, scores, lost)
        if lost[:batch].any():
            raise NonFiniteError("scores", "numbers", f"nan in row {int(np.argmax(lost))}")
        return labels[:batch], scores[:batch]

    # -- Derivatives -----------------------------------------------------------------------------------------

    def pull(self, dy: SparseRows, inputs: bool) -> tuple[Any, TouchedGradient, TouchedGradient]:
        """Return dh (None without `inputs`), and the gradients of edges and biases, of ``at(dy)``."""
        touched = self._touched(dy.columns)
        weights = self._settled(touched)
        d_weights, d_bias = np.zeros_like(weights), np.zeros(touched.labels.size, dtype=self.dtype)
        dense = not isinstance(self.h, SparseRows)
        d_h = np.zeros(self.h.shape if dense and inputs else (0, 0), dtype=self.dtype)
        d_values = np.empty(0 if isinstance(self.h, np.ndarray) else self.h.nnz, dtype=self.dtype)
        read = *self._rows(), dy.starts, touched.local, touched.starts, touched.sources, weights
        kernels.pull(*read, dy.values, inputs, d_weights, d_bias, d_h, d_values)
        order = np.argsort(touched.positions)
        by_edge = TouchedGradient(touched.positions[order], d_weights[order], self.weights.nnz)
        by_label = TouchedGradient(touched.labels, d_bias, self.shape[1])
        if not inputs:
            return None, by_edge, by_label
        dh = self.h.with_values(d_values) if isinstance(self.h, SparseRows) else np.asfortranarray(d_h)
        return dh, by_edge, by_label

    def pull_dense(self, dy: Array, inputs: bool) -> tuple[Any, dict[str, Any]]:
        """Return dh and the gradients for a gradient of all scores."""
        return self._computed()[1](dy, inputs=inputs)

    # -- Parts -----------------------------------------------------------------------------------------------

    def _computed(self) -> tuple[Array, Pullback]:
        if self._whole is None:
            batch, labels = self.shape
            if batch * labels > MOST_SCORES:
                wanted = f"at most {MOST_SCORES} scores as an array (or losses.Sampled, or .at and .top)"
                raise ArgumentError("scores", wanted, f"{batch} x {labels}")
            self._whole = plus_times.product(self.h, self.weights, self.bias, form="dense")
        return self._whole

    def _pattern(self, pattern: Any) -> tuple[Array, Array]:
        if isinstance(pattern, tuple | list) and len(pattern) == 2:
            starts, columns = (np.ascontiguousarray(part, dtype=np.int64) for part in pattern)
            ends = np.diff(starts)
            fits = starts.ndim == columns.ndim == 1 and starts.size == len(self) + 1 and starts[0] == 0
            if not fits or (ends < 0).any() or starts[-1] != columns.size:
                raise ArgumentError("pattern", f"starts of {len(self)} rows, and columns", "others")
            ascend = columns[1:] > columns[:-1]
            ascend[starts[(starts > 0) & (starts < columns.size)] - 1] = True
            if not ascend.all():
                raise ArgumentError("pattern", "columns that ascend in each row", "others")
        else:
            try:
                rows = SparseRows.of(pattern, where="pattern")
            except KindError:
                wanted = "sparse rows, or starts and columns"
                raise KindError("pattern", wanted, type(pattern).__name__) from None
            if rows.shape != self.shape:
                raise ArgumentError("pattern", f"shape {self.shape}", f"shape {rows.shape}")
            starts, columns = rows.starts, rows.columns
        if columns.size and not (columns.min() >= 0 and columns.max() < self.shape[1]):
            bad = int(columns.min()) if columns.min() < 0 else int(columns.max())
            raise ArgumentError("pattern", f"labels from 0 to {self.shape[1] - 1}", bad)
        return starts, columns

    def _touched(self, columns: Array) -> Touched:
        if self._last is None or self._last[0] is not columns:
            touched = _touched(self.weights.edges, columns)
            if isinstance(self.h, SparseRows):
                # Neurons that are not active in the batch share a last place, which stays 0.
                places = Lookup(self._neurons[0]).find(touched.sources)
                touched = touched._replace(sources=np.where(places < 0, self._neurons[0].size, places))
            self._last = columns, touched
        return self._last[1]

    def _settled(self, touched: Touched) -> Array:
        self.weights.settle(touched.positions)  # a lazy optimizer may owe them updates
        values: Array = self.weights.raw[touched.positions]
        return values

    def _bias_of(self, labels: Array) -> Array:
        return np.zeros(labels.size, dtype=self.dtype) if self.bias is None else self.bias[labels]

    def _rows(self) -> tuple[Any, ...]:
        """Return h as the kernels of candidates read it."""
        none, no_values = np.empty(0, dtype=np.int64), np.empty(0, dtype=self.dtype)
        if not isinstance(self.h, SparseRows):
            return True, np.array(self.h, dtype=self.dtype, order="C"), none, none, no_values, 1
        active, ranks = self._neurons
        return False, no_values.reshape(0, 0), self.h.starts, ranks, self.h.values, active.size + 1

    @cached_property
    def _neurons(self) -> tuple[Array, Array]:
        """Which neurons are active in the batch, of sparse h, and which of them each entry is."""
        assert isinstance(self.h, SparseRows)  # noqa: S101  (for the type checker)
        return _numbered(self.h.columns)

    def _active(self) -> tuple[Array, ...]:
        """Return the active entries of sparse h, and from where to where the edges of each are."""
        assert isinstance(self.h, SparseRows)  # noqa: S101  (for the type checker)
        ids, starts, targets = self.weights.edges.by_source
        at = np.minimum(np.searchsorted(ids, self.h.columns), max(ids.size - 1, 0))
        found = ids[at] == self.h.columns if ids.size else np.zeros(at.size, dtype=bool)
        at = at if ids.size else np.zeros_like(at)
        first = np.where(found, starts[at], 0)
        stop = np.where(found, starts[np.minimum(at + 1, starts.size - 1)], 0)
        return self.h.starts, first, stop, self.h.values, targets, self.weights.values


def _numbered(columns: Array) -> tuple[Array, Array]:
    """Return the different numbers, ascending, and which of them each is: O(size), whatever they are."""
    place = np.empty(columns.size, dtype=np.int64)
    found = np.empty(columns.size, dtype=np.int64)
    count = kernels.distinct(columns, kernels.table_for(columns.size), place, found)
    order = np.argsort(found[:count])
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    return found[order], rank[place]


def _touched(edges: Edges, columns: Array) -> Touched:
    labels, local = _numbered(columns)
    ids, begins, others = edges.by_target
    at = np.minimum(np.searchsorted(ids, labels), max(ids.size - 1, 0))
    found = ids[at] == labels if ids.size else np.zeros(labels.size, dtype=bool)
    sizes = np.zeros(labels.size, dtype=np.int64)
    first = np.zeros(labels.size, dtype=np.int64)
    first[found] = begins[at[found]]
    sizes[found] = begins[at[found] + 1] - first[found]
    starts = np.append(0, np.cumsum(sizes))
    at_edge = np.repeat(first - starts[:-1], sizes) + np.arange(starts[-1])
    return Touched(labels, local, starts, others[at_edge], edges.order[at_edge])
