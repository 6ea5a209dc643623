"""Smooth activations: `Gelu`, `Silu`, `Tanh`, `Sigmoid`, `Softplus`."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from gbnn.layers.layer import Array
from gbnn.layers.pointwise import Activation

__all__ = ["Gelu", "Sigmoid", "Silu", "Softplus", "Tanh"]


class Gelu(Activation):
    """The Gaussian error linear unit ``x Phi(x)``, Phi the normal distribution function, exact (no tanh).

    Source: Hendrycks and Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415.

    Examples
    --------
    >>> from gbnn.layers.activations import Gelu
    >>> Gelu().forward([[-1.0, 0.0, 1.0]])[0].round(4)
    array([[-0.1587,  0.    ,  0.8413]])
    """

    keeps_zeros = True

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

    keeps_zeros = True

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
    keeps_zeros = True

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


def _sigmoid(x: Array) -> Array:
    # Several times faster than scipy.special.expit. For very negative x exp(-x) is inf, and 1 / inf is 0.
    y: Array = np.negative(x)
    with np.errstate(over="ignore"):
        np.exp(y, out=y)
    y += 1
    np.reciprocal(y, out=y)
    return y
