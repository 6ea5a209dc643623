"""Initial values of edges, as functions of each edge's fan-in: (rng, fan_in, fan_out) -> values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.errors import KindError, check_finite, check_float
from gbnn.semirings.semiring import fit

__all__ = ["Initializer", "glorot", "he", "normal", "uniform", "zeros"]

Array = np.ndarray[Any, Any]
Initializer = Callable[[np.random.Generator, Array, Array], Array]
"""Draws one value an edge, given the number of edges into its target and out of its source, shape (nnz,)."""


def he(rng: np.random.Generator, fan_in: Array, fan_out: Array) -> Array:
    """Draw from a normal distribution with variance 2 / fan-in of the edge's own target (He et al., 2015).

    A sparse neuron has its own number of inputs; taking the layer's width instead would let the signal of
    sparse layers vanish (Evci et al., 2022, "Gradient flow in sparse neural networks").

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers import he
    >>> he(np.random.default_rng(0), np.full(10_000, 50), np.ones(10_000)).std().round(2)
    np.float64(0.2)
    """
    values: Array = rng.standard_normal(fan_in.size) * np.sqrt(2.0 / np.maximum(fan_in, 1))
    return values


def glorot(rng: np.random.Generator, fan_in: Array, fan_out: Array) -> Array:
    """Draw uniformly, with variance 2 / (fan-in of the target + fan-out of the source).

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers import glorot
    >>> glorot(np.random.default_rng(0), np.full(10_000, 30), np.full(10_000, 20)).std().round(2)
    np.float64(0.2)
    """
    limit = np.sqrt(6.0 / np.maximum(fan_in + fan_out, 1))
    values: Array = rng.uniform(-1.0, 1.0, fan_in.size) * limit
    return values


def normal(deviation: float) -> Initializer:
    """Return an initializer: normal with a fixed standard deviation.

    Examples
    --------
    >>> from gbnn import layers
    >>> layers.Linear.random(9, 9, nnz=20, init=layers.normal(0.1), seed=0).weights.nnz
    20
    """
    check_float("deviation", deviation, 0)

    def draw(rng: np.random.Generator, fan_in: Array, fan_out: Array) -> Array:
        return rng.standard_normal(fan_in.size) * deviation

    return draw


def uniform(low: float, high: float) -> Initializer:
    """Return an initializer: uniform between `low` and `high`.

    Examples
    --------
    >>> from gbnn import layers
    >>> bool(layers.Linear.random(9, 9, nnz=20, init=layers.uniform(1, 2), seed=0).weights.values.min() >= 1)
    True
    """
    check_float("high", high, check_float("low", low))

    def draw(rng: np.random.Generator, fan_in: Array, fan_out: Array) -> Array:
        return rng.uniform(low, high, fan_in.size)

    return draw


def zeros(rng: np.random.Generator, fan_in: Array, fan_out: Array) -> Array:
    """Return zeros: for edges that are grown and must not disturb what the network computes.

    Examples
    --------
    >>> from gbnn import layers
    >>> layers.Linear.random(9, 9, nnz=20, init=layers.zeros).weights.values.any()
    np.False_
    """
    return np.zeros(fan_in.size)


def drawn(
    init: Initializer, rng: np.random.Generator, fan_in: Array, fan_out: Array, dtype: np.dtype[Any]
) -> Array:
    """Call an initializer and check what it returns: one finite number an edge."""
    if not callable(init):
        raise KindError("init", "a function (rng, fan_in, fan_out) -> values", repr(init))
    values = fit("init", init(rng, fan_in, fan_out), fan_in.shape, dtype)
    check_finite("init", values)
    return values
