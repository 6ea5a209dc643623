"""`Activation`: what every activation is, a function of one number applied to every entry of a batch."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from gbnn.layers.layer import Array, Gradients, Layer, Pullback, as_batch, as_output_gradient

__all__ = ["Activation"]


class Activation(Layer):
    """A function of one number, applied to every entry; it takes any number of features.

    A subclass gives `value` and `derivative`, and may narrow `reads`. NaN comes out as NaN. Infinities follow
    IEEE arithmetic and never warn: training itself looks for numbers that are not finite.

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

    @abstractmethod
    def value(self, x: Array) -> Array:
        """Compute the function.

        Parameters
        ----------
        x : ndarray, shape (batch, features), float32 or float64, Fortran order
            Not to be changed.

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

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Pullback]:
        """Apply the function to a batch.

        Parameters
        ----------
        x : ndarray, shape (batch, features)
            float32 and float64 are kept, other real dtypes become float32.
        training : bool
            Makes no difference.

        Returns
        -------
        y : ndarray, shape (batch, features), Fortran order
        pullback : Pullback
            Its gradients are empty: there are no parameters.

        Raises
        ------
        ArgumentError, KindError
            If `x` is not a batch of real numbers; likewise for `dy` in the pullback.
        """
        name = type(self).__name__
        x = as_batch(f"{name}.forward x", x)
        with np.errstate(all="ignore"):
            y = self.value(x)
        # The closure below must not name x and y themselves, or it would hold both alive.
        kept_x: Any = x if "x" in self.reads else None
        kept_y: Any = y if "y" in self.reads else None
        shape, dtype = y.shape, y.dtype

        def pullback(dy: Array, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            if not inputs:
                return None, {}
            dy = as_output_gradient(f"{name}.pullback dy", dy, shape, dtype)
            with np.errstate(all="ignore"):
                return dy * self.derivative(kept_x, kept_y), {}

        return y, pullback
