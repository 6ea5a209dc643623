"""`Affine`: a fixed scale and shift of every feature, to standardize data inside the model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gbnn.errors import ArgumentError, check_finite, check_int, check_real
from gbnn.layers.layer import (
    Activations,
    Gradients,
    Layer,
    Pullback,
    as_activations,
    as_batch,
    as_output_gradient,
)
from gbnn.layers.sparse import through_dense
from gbnn.rows import SparseRows
from gbnn.weights import real_dtype

__all__ = ["Affine"]

Array = np.ndarray[Any, Any]


class Affine(Layer):
    """``y = x · scale + shift``, feature by feature; not trained, but saved with the model.

    Parameters
    ----------
    features : int
    scale, shift : array_like of shape (features,), or scalar
    dtype : dtype
        float32 or float64.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If the numbers are not finite, or not one a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> x = np.array([[100.0, 1.0], [300.0, 1.0]])
    >>> standard = layers.Affine.standardizing(x)
    >>> standard.forward(x)[0]
    array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    >>> standard.inverse().forward(np.array([[-1.0, 0.0]]))[0]
    array([[100.,   1.]], dtype=float32)
    """

    def __init__(self, features: int, scale: Any = 1.0, shift: Any = 0.0, *, dtype: Any = np.float32) -> None:
        self.in_features = self.out_features = check_int("features", features, 1, 2**31)
        self._dtype = real_dtype("dtype", dtype)
        self.scale = self._one_each("scale", scale)
        self.shift = self._one_each("shift", shift)

    def _one_each(self, where: str, values: Any) -> Array:
        array = check_real(where, values)
        if array.shape not in ((), (self.in_features,)):
            raise ArgumentError(where, f"a number, or shape ({self.in_features},)", f"shape {array.shape}")
        with np.errstate(over="ignore"):
            result = np.full(self.in_features or 1, array, dtype=self._dtype)
        check_finite(where, result)
        return result

    @classmethod
    def standardizing(cls, x: Any, *, dtype: Any = np.float32) -> Self:
        """Return the layer that gives every column of `x`, shape (rows, features), mean 0 and deviation 1.

        A column of one value gets mean 0 only.
        """
        batch = as_batch("x", x, dtype=np.dtype(np.float64))
        check_finite("x", batch)
        mean, deviation = batch.mean(axis=0), batch.std(axis=0)
        # A deviation that is only rounding of the mean is none.
        scale = 1 / np.where(deviation > 1e-7 * np.abs(mean), deviation, 1.0)
        return cls(batch.shape[1], scale, -mean * scale, dtype=dtype)

    def inverse(self) -> Affine:
        """Return the layer that undoes this one; ArgumentError where a scale is 0."""
        if not self.scale.all():
            raise ArgumentError("scale", "numbers other than 0, to be undone", 0)
        return Affine(self.scale.size, 1 / self.scale, -self.shift / self.scale, dtype=self._dtype)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute ``x · scale + shift``; see `Layer.forward`. A sparse `x` becomes dense by the shift."""
        where = "Affine.forward x"
        x = as_activations(where, x, self.in_features, self._dtype)
        if isinstance(x, SparseRows):
            return through_dense(self, where, x, training=training, why="a shift makes it dense")
        scale = self.scale.copy()
        with np.errstate(all="ignore"):  # training itself looks for what is not finite
            y = x * scale
            y += self.shift
        shape = y.shape

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            dy = as_output_gradient("Affine.pullback dy", dy, shape, self._dtype)
            with np.errstate(all="ignore"):
                return (dy * scale if inputs else None), {}

        return y, pullback

    def own_buffers(self) -> dict[str, Array]:
        """Return scale and shift."""
        return {"scale": self.scale, "shift": self.shift}

    def config(self) -> dict[str, Any]:
        """Return the number of features and the dtype."""
        return {"features": self.in_features, "dtype": self._dtype.name}

    def __repr__(self) -> str:
        return f"Affine({self.in_features})"
