"""Normalization: `LayerNorm` over the features of a sample, `BatchNorm` over the samples of a feature.

Both keep float32 right when the mean is large: statistics are summed in float64, and the batch is centred
before it is squared. The mean itself is rounded to the dtype of the batch for that; what the rounding left
over, `rest`, is known exactly and accounted for in the small vectors that follow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError, check_float, check_int
from gbnn.layers.active_norm import normalized_entries
from gbnn.layers.layer import (
    Activations,
    Array,
    Gradients,
    Layer,
    Parameter,
    Pullback,
    as_activations,
    as_output_gradient,
)
from gbnn.layers.sparse import through_dense
from gbnn.rows import SparseRows
from gbnn.weights import real_dtype

__all__ = ["BatchNorm", "LayerNorm"]


class _Centred(NamedTuple):
    """A batch with its mean taken away along one axis; the vectors are float64."""

    centred: Array  # x - round(mean), shape and order of x
    rest: Array  # mean - round(mean)
    mean: Array
    variance: Array  # biased


def _centre(x: Array, axis: int) -> _Centred:
    mean: Array = x.mean(axis=axis, dtype=np.float64)
    rounded = mean.astype(x.dtype)
    centred: Array = x - np.expand_dims(rounded, axis)
    rest: Array = mean - rounded
    squares = _dot(centred, centred, axis)
    variance: Array = np.maximum(squares / x.shape[axis] - np.square(rest), 0)
    return _Centred(centred, rest, mean, variance)


def _dot(a: Array, b: Array, axis: int) -> Array:
    """Sum of a b along one axis, in float64 whatever the dtype: squares of float32 cannot overflow."""
    total: Array = np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", a, b, dtype=np.float64)
    return total


class _Normalization(Layer):
    """What both have: features, epsilon, and `scale` and `shift` for each feature."""

    def __init__(self, features: int, epsilon: float, dtype: Any) -> None:
        name = type(self).__name__
        self.in_features = self.out_features = check_int(f"{name} features", features, 1, 2**31)
        self.dtype = real_dtype(f"{name} dtype", dtype)
        # Less than the least normal number would make 1 / sqrt(variance + epsilon) useless, or infinite.
        self.epsilon = check_float(f"{name} epsilon", epsilon, float(np.finfo(self.dtype).tiny))
        self.scale: Array = np.ones(features, dtype=self.dtype)
        self.shift: Array = np.zeros(features, dtype=self.dtype)

    def own_parameters(self) -> dict[str, Parameter]:
        """Return `scale` and `shift`, each of shape (features,)."""
        return {"scale": self.scale, "shift": self.shift}

    def config(self) -> dict[str, Any]:
        """Return {"features": ..., "epsilon": ..., "dtype": ...}."""
        return {"features": self.in_features, "epsilon": self.epsilon, "dtype": self.dtype.name}


class LayerNorm(_Normalization):
    """Bring the features of each sample to mean 0 and variance 1, then scale and shift each feature.

    ``y = scale (x - mean) / sqrt(variance + epsilon) + shift``, mean and (biased) variance over the features
    of the sample; the same in training and evaluation. Of sparse activations they are over the sample's
    active entries alone, and only these are scaled and shifted: another function than that of the same batch
    as an array, where zeros count.

    Source: Ba, Kiros and Hinton, "Layer normalization", arXiv:1607.06450.

    Parameters
    ----------
    features : int
        Number of features, in and out.
    epsilon : float
        Added to the variance; at least the least normal number of `dtype`.
    dtype : dtype
        float32 or float64, of the parameters and the output.

    Attributes
    ----------
    scale, shift : ndarray, shape (features,)
        Parameters, at first 1 and 0.

    Raises
    ------
    ArgumentError, KindError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.normalize import LayerNorm
    >>> y, pullback = LayerNorm(4).forward(np.array([[1.0, 2.0, 3.0, 4.0]]))
    >>> y.round(3)
    array([[-1.342, -0.447,  0.447,  1.342]], dtype=float32)
    """

    def __init__(self, features: int, *, epsilon: float = 1e-5, dtype: Any = np.float32) -> None:
        super().__init__(features, epsilon, dtype)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Normalize each row of a batch.

        Parameters
        ----------
        x : ndarray or anything sparse, shape (batch, features)
            Turned into the dtype of the layer.
        training : bool
            Makes no difference.

        Returns
        -------
        y : ndarray, Fortran order, or SparseRows, as x is; shape (batch, features)
        pullback : Pullback
            Its gradients are those of `scale` and `shift`.

        Raises
        ------
        ArgumentError, KindError
            If `x` is not a batch of real numbers with that many features; likewise for `dy` in the pullback.
        """
        x = as_activations("LayerNorm.forward x", x, self.in_features, self.dtype)
        if isinstance(x, SparseRows):
            return normalized_entries("LayerNorm.pullback dy", x, self.scale, self.shift, self.epsilon)
        dtype = self.dtype
        scale = self.scale.copy()  # the optimizer changes it in place
        with np.errstate(all="ignore"):
            normal, rest, _, variance = _centre(x, axis=1)
            inverse = 1 / np.sqrt(variance + self.epsilon)
            normal *= inverse.astype(dtype)[:, None]
            normal -= (rest * inverse).astype(dtype)[:, None]
            y: Array = normal * scale
            y += self.shift

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            dy = as_output_gradient("LayerNorm.pullback dy", dy, normal.shape, dtype)
            with np.errstate(all="ignore"):
                product: Array = dy * normal
                dscale = product.sum(axis=0, dtype=np.float64).astype(dtype)
                dshift = dy.sum(axis=0, dtype=np.float64).astype(dtype)
                gradients = {"scale": dscale, "shift": dshift}
                if not inputs:
                    return None, gradients
                # With g = scale dy and n the normalized row: dx = (g - mean(g) - n mean(g n)) / sqrt(...);
                # both means over the features are products with the vector of scales.
                share = scale / scale.size
                across = product @ share
                level = dy @ share
                dx: Array = dy * scale
                np.multiply(normal, across[:, None], out=product)
                dx -= product
                dx -= level[:, None]
                dx *= inverse.astype(dtype)[:, None]
            return dx, gradients

        return y, pullback


class BatchNorm(_Normalization):
    """Bring each feature to mean 0 and variance 1 over the batch, then scale and shift it.

    ``y = scale (x - mean) / sqrt(variance + epsilon) + shift``. In training, mean and (biased) variance are
    those of the batch, and the running ones move towards them by `momentum`, with the unbiased variance;
    evaluation uses the running ones. Equal to torch.nn.BatchNorm1d.

    Source: Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    covariate shift", ICML 2015, arXiv:1502.03167.

    Parameters
    ----------
    features : int
        Number of features, in and out.
    momentum : float in [0, 1]
        Weight of the newest batch in the running statistics.
    epsilon : float
        Added to the variance; at least the least normal number of `dtype`.
    dtype : dtype
        float32 or float64, of the parameters, the buffers and the output.

    Attributes
    ----------
    scale, shift : ndarray, shape (features,)
        Parameters, at first 1 and 0.
    mean, variance : ndarray, shape (features,)
        Buffers: the running statistics, at first 0 and 1, updated in place.

    Raises
    ------
    ArgumentError, KindError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.normalize import BatchNorm
    >>> layer = BatchNorm(1)
    >>> layer.forward(np.array([[1.0], [3.0]]), training=True)[0].round(3)
    array([[-1.],
           [ 1.]], dtype=float32)
    >>> layer.mean, layer.variance
    (array([0.2], dtype=float32), array([1.1], dtype=float32))
    """

    def __init__(
        self, features: int, *, momentum: float = 0.1, epsilon: float = 1e-5, dtype: Any = np.float32
    ) -> None:
        super().__init__(features, epsilon, dtype)
        self.momentum = check_float("BatchNorm momentum", momentum, 0, 1)
        self.mean: Array = np.zeros(features, dtype=self.dtype)
        self.variance: Array = np.ones(features, dtype=self.dtype)

    def own_buffers(self) -> dict[str, Array]:
        """Return the running `mean` and `variance`, each of shape (features,)."""
        return {"mean": self.mean, "variance": self.variance}

    def config(self) -> dict[str, Any]:
        """Return {"features": ..., "epsilon": ..., "dtype": ..., "momentum": ...}."""
        return {**super().config(), "momentum": self.momentum}

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Normalize each column of a batch.

        Parameters
        ----------
        x : ndarray or anything sparse, shape (batch, features)
            Turned into the dtype of the layer.
        training : bool
            Whether to use the statistics of the batch, and update the running ones.

        Returns
        -------
        y : ndarray, shape (batch, features), Fortran order
        pullback : Pullback
            Its gradients are those of `scale` and `shift`.

        Raises
        ------
        ArgumentError, KindError
            If `x` is not a batch of real numbers with that many features, or in training has only one row:
            there every feature would become 0. Likewise for `dy` in the pullback.
        """
        x = as_activations("BatchNorm.forward x", x, self.in_features, self.dtype)
        if isinstance(x, SparseRows):
            why = "a mean that is not 0 makes it dense"
            return through_dense(self, "BatchNorm.forward x", x, training=training, why=why)
        if training and x.shape[0] == 1:
            raise ArgumentError("BatchNorm.forward x", "at least two rows in training", "one row")
        with np.errstate(all="ignore"):
            return self._by_batch(x) if training else self._by_running(x)

    def _by_batch(self, x: Array) -> tuple[Array, Pullback]:
        rows, dtype = x.shape[0], self.dtype
        centred, rest, mean, variance = _centre(x, axis=0)
        self.mean += self.momentum * (mean - self.mean)
        self.variance += self.momentum * (variance * (rows / (rows - 1)) - self.variance)
        inverse = 1 / np.sqrt(variance + self.epsilon)
        slope = self.scale * inverse
        y: Array = centred * slope.astype(dtype)
        y += (self.shift - rest * slope).astype(dtype)

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            dy = as_output_gradient("BatchNorm.pullback dy", dy, centred.shape, dtype)
            with np.errstate(all="ignore"):
                dshift: Array = dy.sum(axis=0, dtype=np.float64)
                dscale = inverse * (_dot(dy, centred, axis=0) - rest * dshift)
                gradients = {"scale": dscale.astype(dtype), "shift": dshift.astype(dtype)}
                if not inputs:
                    return None, gradients
                # With n = (centred - rest) inverse: dx = slope (dy - mean(dy) - n mean(dy n)), written as
                # slope dy - bend centred + level, one number a feature each.
                bend = slope * inverse * dscale / rows
                level = bend * rest - slope * dshift / rows
                dx: Array = dy * slope.astype(dtype)
                dx -= centred * bend.astype(dtype)
                dx += level.astype(dtype)
            return dx, gradients

        return y, pullback

    def _by_running(self, x: Array) -> tuple[Array, Pullback]:
        dtype = self.dtype
        mean = self.mean.copy()  # training changes it in place
        inverse = 1 / np.sqrt(self.variance.astype(np.float64) + self.epsilon)
        slope = (self.scale * inverse).astype(dtype)
        y: Array = x - mean
        y *= slope
        y += self.shift

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            dy = as_output_gradient("BatchNorm.pullback dy", dy, x.shape, dtype)
            with np.errstate(all="ignore"):
                dscale = inverse * _dot(dy, x - mean, axis=0)
                dshift = dy.sum(axis=0, dtype=np.float64)
                gradients = {"scale": dscale.astype(dtype), "shift": dshift.astype(dtype)}
                return (dy * slope if inputs else None), gradients

        return y, pullback
