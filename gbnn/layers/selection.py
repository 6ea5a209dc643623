"""`Selection`: some entries of a batch pass, the others become absent (k-winners, threshold)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from gbnn.layers.layer import (
    Activations,
    Array,
    Gradients,
    Layer,
    Pullback,
    as_activations,
    values_of_gradient,
)
from gbnn.layers.sparse import spread
from gbnn.rows import SparseRows

__all__ = ["Selection"]


class Selection(Layer):
    """A layer that lets some entries of a batch through as they are: `SparseRows` out, whatever came in.

    The gradient passes straight through where an entry did, and nowhere else. A subclass says which: by
    `places` of an array, by `chosen` of sparse rows; and perhaps remembers what came out (`saw`).
    """

    @abstractmethod
    def places(self, x: Array, training: bool) -> tuple[Array, Array, Array]:
        """Return where in a batch, shape (batch, features), entries pass.

        Returns
        -------
        starts : ndarray of int64, shape (batch + 1,)
        rows, columns : ndarray of int64, shape (passed,)
            Row by row, columns ascending: as `SparseRows` has them.
        """

    @abstractmethod
    def chosen(self, x: SparseRows, training: bool) -> Array:
        """Return whether each active entry passes: bool, shape (nnz,)."""

    def saw(self, y: SparseRows) -> None:
        """Take note of an output in training."""

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Let entries through; see `Layer.forward`.

        Returns
        -------
        y : SparseRows, shape (batch, features)
        pullback : Pullback
            Of a dense `x`, dx is sparse, with the pattern of y.
        """
        x = as_activations(f"{type(self).__name__}.forward x", x)
        keep: Array | None = None
        if isinstance(x, SparseRows):
            keep = self.chosen(x, training)
            y = x.where(keep)
            active = x
        else:
            starts, rows, columns = self.places(x, training)
            y = SparseRows(starts, columns, x[rows, columns], (x.shape[0], x.shape[1]))
            active = y
        if training:
            self.saw(y)

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[SparseRows | None, Gradients]:
            if not inputs:
                return None, {}
            values = values_of_gradient(f"{type(self).__name__}.pullback dy", dy, y)
            return active.with_values(values if keep is None else spread(values, keep)), {}

        return self._out(y), pullback

    def _out(self, y: SparseRows) -> Activations:
        return y
