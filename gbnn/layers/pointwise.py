"""`Activation`: what every activation is, a function of one number applied to every entry of a batch."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from gbnn.layers.layer import (
    Activations,
    Array,
    Gradients,
    Layer,
    Pullback,
    as_activations,
    values_of_gradient,
)
from gbnn.layers.sparse import checked_gradient, spread, through_dense
from gbnn.rows import SparseRows

__all__ = ["Activation"]


class Activation(Layer):
    """A function of one number, applied to every entry; it takes any number of features.

    A subclass gives `value` and `derivative`, and may narrow `reads`. NaN comes out as NaN. Infinities follow
    IEEE arithmetic and never warn: training itself looks for numbers that are not finite.

    A function that is 0 at 0 says so (`keeps_zeros`): it then works on the active entries of a sparse batch
    alone. Any other makes the batch dense.

    Examples
    --------
    >>> from gbnn.layers.pointwise import Activation
    >>> class Square(Activation):
    ...     reads = "x"
    ...
    ...     def value(self, x):
    ...         return x * x
    ...
    ...     def derivative(self, x, y):
    ...         return 2 * x
    >>> y, pullback = Square().forward([[1.0, -3.0]])
    >>> y
    array([[1., 9.]])
    >>> pullback([[1.0, 1.0]])[0]
    array([[ 2., -6.]])
    """

    reads: ClassVar[str] = "xy"
    """What `derivative` reads: "x", "y" or "xy". The rest is not held for the pullback, and comes as None."""

    keeps_zeros: ClassVar[bool] = False
    """Whether the function is 0 at 0, so that sparse activations stay sparse."""

    drops_zeros: ClassVar[bool] = False
    """Whether entries that become 0 leave the pattern of a sparse batch; else it stays as it is."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """Compute the function.

        Parameters
        ----------
        x : ndarray, shape (batch, features), float32 or float64, Fortran order
            Not to be changed. Of a sparse batch it holds the active entries, shape (nnz, 1).

        Returns
        -------
        ndarray
            Of the same shape, dtype and order.
        """

    @abstractmethod
    def derivative(self, x: Array, y: Array) -> Array:
        """Compute dy/dx, entry by entry.

        Parameters
        ----------
        x, y : ndarray, shape (batch, features)
            Input and output of `value`; None in place of one that `reads` leaves out. Not to be changed.

        Returns
        -------
        ndarray
            Of the same shape, or one that broadcasts to it; bool, or the dtype of `x`.
        """

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Apply the function to a batch.

        Parameters
        ----------
        x : ndarray or anything sparse, shape (batch, features)
            float32 and float64 are kept, other real dtypes become float32.
        training : bool
            Makes no difference.

        Returns
        -------
        y : ndarray, Fortran order, or SparseRows, shape (batch, features)
            Sparse where `x` is and the function keeps zeros.
        pullback : Pullback
            Its gradients are empty: there are no parameters. Of a dense batch, sparse dy gives sparse dx.

        Raises
        ------
        ArgumentError, KindError
            If `x` is not a batch of real numbers, or sparse and too large for an array where the function
            does not keep zeros; likewise for `dy` in the pullback.
        """
        where = f"{type(self).__name__}.forward x"
        x = as_activations(where, x)
        if not isinstance(x, SparseRows):
            return self._on_array(x)
        if self.keeps_zeros:
            return self._on_entries(x)
        why = "the function is not 0 at 0 and so makes it dense"
        return through_dense(self, where, x, training=training, why=why)

    def _on_array(self, x: Array) -> tuple[Array, Pullback]:
        with np.errstate(all="ignore"):
            y = self.value(x)
        # The closure below must not name x and y themselves, or it would hold both alive.
        kept_x: Any = x if "x" in self.reads else None
        kept_y: Any = y if "y" in self.reads else None
        shape, dtype = y.shape, y.dtype

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            if not inputs:
                return None, {}
            dy = checked_gradient(self._dy, dy, shape, dtype)
            with np.errstate(all="ignore"):
                if not isinstance(dy, SparseRows):
                    return dy * self.derivative(kept_x, kept_y), {}
                at = dy.rows, dy.columns
                parts = (None if kept is None else kept[at].reshape(-1, 1) for kept in (kept_x, kept_y))
                return dy.with_values(self._chained(dy.values, *parts)), {}

        return y, pullback

    def _on_entries(self, x: SparseRows) -> tuple[SparseRows, Pullback]:
        flat = x.values.reshape(-1, 1)
        with np.errstate(all="ignore"):
            value = self.value(flat)
        y, keep = x.with_values(value.reshape(-1)), None
        if self.drops_zeros and not (stays := y.values != 0).all():
            keep, y = stays, y.where(stays)
            flat, value = flat[keep], y.values.reshape(-1, 1)
        kept_x: Any = flat if "x" in self.reads else None
        kept_y: Any = value if "y" in self.reads else None

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[SparseRows | None, Gradients]:
            if not inputs:
                return None, {}
            values = values_of_gradient(self._dy, dy, y)
            with np.errstate(all="ignore"):
                dx = self._chained(values, kept_x, kept_y)
            return x.with_values(dx if keep is None else spread(dx, keep)), {}

        return y, pullback

    @property
    def _dy(self) -> str:
        return f"{type(self).__name__}.pullback dy"

    def _chained(self, dy: Array, x: Any, y: Any) -> Array:
        """Return dy times the derivative, of entries in one column."""
        dx: Array = dy.reshape(-1, 1) * self.derivative(x, y)
        return dx.reshape(-1)
