"""Pullbacks against central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


def numeric_gradient(scalar: Callable[[], float], array: Array, step: float = 1e-6) -> Array:
    """Central differences of `scalar()` with respect to every entry of `array`, which it reads."""
    gradient = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        kept = array[index]
        array[index] = kept + step
        up = scalar()
        array[index] = kept - step
        down = scalar()
        array[index] = kept
        gradient[index] = (up - down) / (2 * step)
    return gradient


def numeric_weight_gradient(scalar: Callable[[], float], weights: Weights, step: float = 1e-6) -> Array:
    """The same for the values of a `Weights`."""
    values = weights.values.copy()
    gradient = np.zeros(values.shape)
    for k in range(values.size):
        sides = []
        for sign in (1, -1):
            moved = values.copy()
            moved[k] += sign * step
            weights.assign(moved)
            sides.append(scalar())
        gradient[k] = (sides[0] - sides[1]) / (2 * step)
    weights.assign(values)
    return gradient


def check_layer_pullback(
    layer: Any, x: Array, *, training: bool = False, tolerance: float = 1e-6, unused: tuple[str, ...] = ()
) -> None:
    """Compare dx and every parameter's gradient of `layer` (float64) with central differences of <y, dy>.

    A layer with randomness or state must give the same output at each call to be checked this way. Of
    parameters that are `unused`, only the shape of the gradient is.
    """
    x = np.asfortranarray(x, dtype=np.float64)
    y, pullback = layer.forward(x, training=training)
    dy = np.asfortranarray(np.random.default_rng(0).standard_normal(y.shape))
    dx, gradients = pullback(dy)

    def scalar() -> float:
        return float((layer.forward(x, training=training)[0] * dy).sum())

    np.testing.assert_allclose(dx, numeric_gradient(scalar, x), rtol=tolerance, atol=tolerance)
    parameters = layer.parameters()
    assert set(gradients) == set(parameters)
    for name, parameter in parameters.items():
        if name in unused:
            assert np.asarray(gradients[name]).shape == parameter.values.shape
            continue
        if isinstance(parameter, Weights):
            expected = numeric_weight_gradient(scalar, parameter)
        else:
            expected = numeric_gradient(scalar, parameter)
        np.testing.assert_allclose(
            np.asarray(gradients[name]), expected, rtol=tolerance, atol=tolerance, err_msg=name
        )
