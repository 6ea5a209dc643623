"""Activations: functions of one number, applied to every entry of a batch.

A new one is a subclass of `Activation` with two methods, `value` and `derivative`, and a line in
`ACTIVATIONS`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from gbnn.errors import ArgumentError, KindError, check_float
from gbnn.layers.layer import Array, Gradients, Layer, Pullback, as_batch

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Gelu",
    "Identity",
    "LeakyRelu",
    "Relu",
    "Sigmoid",
    "Silu",
    "Softplus",
    "Tanh",
    "activation",
]


def as_output_gradient(where: str, dy: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return `dy` in the shape and dtype of a layer's output, in Fortran order, or raise naming `where`."""
    batch: Array = as_batch(where, dy, shape[1], dtype)
    if batch.shape != shape:  # one row would be broadcast silently
        raise ArgumentError(where, f"the shape of the output, {shape}", batch.shape)
    return batch


class Activation(Layer):
    """A function of one number, applied to every entry; it takes any number of features.

    A subclass gives `value` and `derivative`, and may narrow `reads`. NaN comes out as NaN. Infinities follow
    IEEE arithmetic and never warn: training itself looks for numbers that are not finite.

    Examples
    --------
    >>> from gbnn.layers.activations import Activation
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


class Relu(Activation):
    """The rectifier ``max(x, 0)``; its derivative at 0 is 0.

    Source: Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", ICML 2010.

    Examples
    --------
    >>> from gbnn.layers.activations import Relu
    >>> y, pullback = Relu().forward([[-1.0, 2.0]])
    >>> y
    array([[0., 2.]])
    >>> pullback([[5.0, 5.0]])[0]
    array([[0., 5.]])
    """

    reads = "y"

    def value(self, x: Array) -> Array:
        """Return ``max(x, 0)``."""
        # Against an array of zeros NumPy's maximum runs three times faster than against the number 0.
        y: Array = np.zeros(x.shape, dtype=x.dtype, order="F")
        np.maximum(x, y, out=y)
        return y

    def derivative(self, x: Array, y: Array) -> Array:
        """Return where y > 0, as bool."""
        return y > 0


class LeakyRelu(Activation):
    """The rectifier that lets `slope` times a negative `x` through; its derivative at 0 is `slope`.

    Source: Maas, Hannun and Ng, "Rectifier nonlinearities improve neural network acoustic models", ICML 2013.

    Parameters
    ----------
    slope : float in (0, 1]
        Slope for negative `x`. (For 0 there is `Relu`.)

    Raises
    ------
    ArgumentError, KindError
        If `slope` is outside (0, 1] or no number.

    Examples
    --------
    >>> from gbnn.layers.activations import LeakyRelu
    >>> LeakyRelu(0.5).forward([[-1.0, 2.0]])[0]
    array([[-0.5,  2. ]])
    """

    reads = "y"  # y has the sign of x, because the slope is positive

    def __init__(self, slope: float = 0.01) -> None:
        self.slope = check_float("LeakyRelu slope", slope, 0, 1, open_low=True)

    def config(self) -> dict[str, Any]:
        """Return {"slope": ...}."""
        return {"slope": self.slope}

    def value(self, x: Array) -> Array:
        """Return ``max(x, slope x)``."""
        y: Array = self.slope * x
        np.maximum(x, y, out=y)
        return y

    def derivative(self, x: Array, y: Array) -> Array:
        """Return 1 where y > 0, `slope` elsewhere."""
        d = (y > 0).astype(y.dtype)
        np.maximum(d, self.slope, out=d)  # many times faster than np.where
        return d


class Gelu(Activation):
    """The Gaussian error linear unit ``x Phi(x)``, Phi the normal distribution function, exact (no tanh).

    Source: Hendrycks and Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415.

    Examples
    --------
    >>> from gbnn.layers.activations import Gelu
    >>> Gelu().forward([[-1.0, 0.0, 1.0]])[0].round(4)
    array([[-0.1587,  0.    ,  0.8413]])
    """

    def value(self, x: Array) -> Array:
        """Return ``x Phi(x)``."""
        y: Array = ndtr(x)
        y *= x
        return y

    def derivative(self, x: Array, y: Array) -> Array:
        """Return ``Phi(x) + x phi(x)``, phi the normal density."""
        # Phi(x) again, from y = x Phi(x): a division costs a tenth of a second ndtr. Near 0, where the
        # division fails, Phi is 1/2 to the last bit.
        d: Array = y / x
        np.copyto(d, 0.5, where=np.abs(x) < 1e-30)
        # Beyond 40 the density is 0 in every dtype; clipping keeps the square from overflowing.
        clipped = np.clip(x, -40, 40)
        density = np.square(clipped)
        density *= -0.5
        np.exp(density, out=density)
        density *= clipped
        density *= 1 / math.sqrt(2 * math.pi)
        d += density
        return d


class Silu(Activation):
    """The sigmoid linear unit ``x sigmoid(x)``, also called swish.

    Source: Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", Neural Networks 107, 2018, arXiv:1702.03118.

    Examples
    --------
    >>> from gbnn.layers.activations import Silu
    >>> Silu().forward([[-1.0, 0.0, 1.0]])[0].round(4)
    array([[-0.2689,  0.    ,  0.7311]])
    """

    def value(self, x: Array) -> Array:
        """Return ``x sigmoid(x)``."""
        y = _sigmoid(x)
        y *= x
        return y

    def derivative(self, x: Array, y: Array) -> Array:
        """Return ``s + y (1 - s)`` with ``s = sigmoid(x)``."""
        s = _sigmoid(x)
        d: Array = 1 - s
        d *= y
        d += s
        return d


class Tanh(Activation):
    """The hyperbolic tangent.

    Source: LeCun, Bottou, Orr and Müller, "Efficient BackProp", Neural Networks: Tricks of the Trade, 1998.

    Examples
    --------
    >>> from gbnn.layers.activations import Tanh
    >>> Tanh().forward([[-1.0, 0.0, 1.0]])[0].round(4)
    array([[-0.7616,  0.    ,  0.7616]])
    """

    reads = "y"

    def value(self, x: Array) -> Array:
        """Return ``tanh(x)``."""
        y: Array = np.tanh(x)
        return y

    def derivative(self, x: Array, y: Array) -> Array:
        """Return ``1 - y²``."""
        d: Array = np.square(y)
        np.subtract(1, d, out=d)
        return d


class Sigmoid(Activation):
    """The logistic function ``1 / (1 + exp(-x))``.

    Source: Rumelhart, Hinton and Williams, "Learning representations by back-propagating errors", Nature 323,
    1986.

    Examples
    --------
    >>> from gbnn.layers.activations import Sigmoid
    >>> Sigmoid().forward([[-1.0, 0.0, 1.0]])[0].round(4)
    array([[0.2689, 0.5   , 0.7311]])
    """

    reads = "y"

    def value(self, x: Array) -> Array:
        """Return ``1 / (1 + exp(-x))``."""
        return _sigmoid(x)

    def derivative(self, x: Array, y: Array) -> Array:
        """Return ``y (1 - y)``."""
        d: Array = 1 - y
        d *= y
        return d


class Softplus(Activation):
    """The smooth rectifier ``log(1 + exp(x))``.

    Source: Dugas, Bengio, Bélisle, Nadeau and Garcia, "Incorporating second-order functional knowledge for
    better option pricing", NIPS 2000.

    Examples
    --------
    >>> from gbnn.layers.activations import Softplus
    >>> Softplus().forward([[-1.0, 0.0, 1.0]])[0].round(4)
    array([[0.3133, 0.6931, 1.3133]])
    """

    reads = "y"

    def value(self, x: Array) -> Array:
        """Return ``max(x, 0) + log(1 + exp(-|x|))``, which is the same and cannot overflow."""
        y: Array = np.abs(x)
        np.negative(y, out=y)
        np.exp(y, out=y)
        np.log1p(y, out=y)
        y += np.maximum(x, 0)
        return y

    def derivative(self, x: Array, y: Array) -> Array:
        """Return ``1 - exp(-y)``, which is ``sigmoid(x)``."""
        d: Array = np.negative(y)
        np.expm1(d, out=d)
        np.negative(d, out=d)
        return d


class Identity(Activation):
    """The identity: `y` is `x` itself, not a copy, where `x` needs no conversion.

    Examples
    --------
    >>> from gbnn.layers.activations import Identity
    >>> Identity().forward([[-1.0, 2.0]])[0]
    array([[-1.,  2.]])
    """

    reads = ""

    def value(self, x: Array) -> Array:
        """Return `x`."""
        return x

    def derivative(self, x: Array, y: Array) -> Array:
        """Return 1, as a bool that broadcasts."""
        return np.ones((1, 1), dtype=np.bool_)


ACTIVATIONS: dict[str, Callable[[], Activation]] = {
    "gelu": Gelu,
    "identity": Identity,
    "leaky_relu": LeakyRelu,
    "relu": Relu,
    "sigmoid": Sigmoid,
    "silu": Silu,
    "softplus": Softplus,
    "tanh": Tanh,
}
"""Name -> the class that makes the activation of that name, with its defaults."""


def activation(name: str) -> Activation:
    """Make an activation from its name.

    Parameters
    ----------
    name : str
        One of `ACTIVATIONS`.

    Returns
    -------
    Activation

    Raises
    ------
    ArgumentError
        If there is none of that name; the message lists the names.
    KindError
        If `name` is not a string.

    Examples
    --------
    >>> from gbnn.layers.activations import activation
    >>> activation("leaky_relu")
    LeakyRelu(slope=0.01)
    """
    if not isinstance(name, str):
        raise KindError("activation", "a name", f"{name!r} of type {type(name).__name__}")
    if name not in ACTIVATIONS:
        raise ArgumentError("activation", f"one of {', '.join(ACTIVATIONS)}", repr(name))
    return ACTIVATIONS[name]()


def _sigmoid(x: Array) -> Array:
    # Several times faster than scipy.special.expit. For very negative x exp(-x) is inf, and 1 / inf is 0.
    y: Array = np.negative(x)
    with np.errstate(over="ignore"):
        np.exp(y, out=y)
    y += 1
    np.reciprocal(y, out=y)
    return y
