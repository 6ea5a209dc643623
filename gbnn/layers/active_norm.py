"""`LayerNorm` of sparse activations: the statistics are those of a sample's active entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.layers.layer import Array, Gradients, Pullback, values_of_gradient
from gbnn.rows import SparseRows

__all__ = ["normalized_entries"]


def normalized_entries(
    where: str, x: SparseRows, scale: Array, shift: Array, epsilon: float
) -> tuple[SparseRows, Pullback]:
    """Bring the active entries of each row to mean 0 and variance 1, then scale and shift them.

    With n active entries in a row, ``mean = Σ x / n`` and ``variance = Σ (x - mean)² / n``; an entry of
    feature j becomes ``scale[j] (x - mean) / sqrt(variance + epsilon) + shift[j]``. What is absent stays so.

    Parameters
    ----------
    where : str
        Names `dy` in errors.
    x : SparseRows
    scale, shift : ndarray, shape (features,)
    epsilon : float

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.active_norm import normalized_entries
    >>> from gbnn.rows import SparseRows
    >>> x = SparseRows.from_dense([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]])
    >>> normalized_entries("dy", x, np.ones(3), np.zeros(3), 1e-12)[0].to_dense()
    array([[ 0., -1.,  1.],
           [ 0.,  0.,  0.]])
    """
    rows, batch, features, dtype = x.rows, *x.shape, x.dtype
    # All in float64: squares of float32 cannot overflow there, and a large mean costs no digits.
    counts = np.maximum(np.diff(x.starts), 1)

    def means(values: Array) -> Array:
        """Return the mean of each row's entries, at each of its entries."""
        each: Array = (np.bincount(rows, values, batch) / counts)[rows]
        return each

    with np.errstate(all="ignore"):  # training itself looks for what is not finite
        centred = x.values.astype(np.float64)
        centred -= means(centred)
        inverse = 1 / np.sqrt(means(np.square(centred)) + epsilon)
        normal = (centred * inverse).astype(dtype)
        scales = scale[x.columns]
        y = x.with_values(normal * scales + shift[x.columns])
    inverse = inverse.astype(dtype)

    def pullback(dy: Any, *, inputs: bool = True) -> tuple[SparseRows | None, Gradients]:
        given = values_of_gradient(where, dy, y)
        with np.errstate(all="ignore"):
            dscale = np.bincount(x.columns, given * normal, features).astype(dtype)
            dshift = np.bincount(x.columns, given, features).astype(dtype)
            gradients = {"scale": dscale, "shift": dshift}
            if not inputs:
                return None, gradients
            # As with arrays: dx = (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon), g = scale dy.
            g = given * scales
            dx = (g - means(g) - normal * means(g * normal)) * inverse
        return x.with_values(dx.astype(dtype)), gradients

    return y, pullback
