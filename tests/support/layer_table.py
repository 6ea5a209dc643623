"""One table of all layers, for the tests of what every layer must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from gbnn import layers, semirings
from gbnn.layers import Layer
from gbnn.rows import SparseRows


class Row(NamedTuple):
    """How to make a layer in float64, the width it is tried at, and whether training changes what comes next.

    Parameters that are `unused` have gradients, but no part in the output; the layer's own tests are of them.
    A layer with an `own_meaning` of sparse activations gives another output than for the same batch dense.
    """

    make: Callable[[], Layer]
    width: int
    random: bool = False
    unused: tuple[str, ...] = ()
    own_meaning: bool = False

    def arrays(self) -> ArraysOut:
        """Make the layer, with arrays out where it gives sparse activations or gradients."""
        return ArraysOut(self.make())


def as_array(activations: Any) -> Any:
    """Turn sparse activations into an array, and leave others."""
    return activations.to_dense() if isinstance(activations, SparseRows) else activations


class ArraysOut:
    """A layer whose outputs and dx are arrays; all else is the layer's."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.layer, name)

    def forward(self, x: Any, *, training: bool = False) -> Any:
        """As the layer, with arrays out."""
        y, inner = self.layer.forward(x, training=training)

        def pullback(dy: Any, *, inputs: bool = True) -> Any:
            dx, gradients = inner(dy, inputs=inputs)
            return as_array(dx), gradients

        return as_array(y), pullback


def linear(in_features: int = 6, out_features: int = 5, start: float = 0.0, **more: Any) -> layers.Linear:
    options = {"nnz": 13, "dtype": np.float64, "seed": 0} | more
    made = layers.Linear.random(in_features, out_features, **options)
    if start and made.bias is not None:  # away from ties, where nothing can be differentiated
        made.bias[...] = np.linspace(start, 2 * start, out_features)
    return made


def dense(in_features: int = 5, out_features: int = 3, **more: Any) -> layers.Dense:
    made = layers.Dense.random(in_features, out_features, dtype=np.float64, seed=1, **more)
    if made.bias is not None:
        made.bias[...] = np.linspace(-1, 1, out_features)
    return made


def normalization(kind: type[Layer]) -> Layer:
    made = kind(6, dtype=np.float64)
    rng = np.random.default_rng(2)
    for array in (*made.own_parameters().values(), *made.own_buffers().values()):
        array[...] = rng.uniform(0.5, 1.5, array.shape)
    return made


# Activations and others that take any width are tried at 4.
TABLE = {
    "Linear": Row(linear, 6),
    "Linear without bias": Row(lambda: linear(bias=False), 6),
    "Linear without edges": Row(lambda: linear(nnz=0), 6),
    "Linear min_plus": Row(lambda: linear(semiring=semirings.min_plus), 6, own_meaning=True),
    "Linear log_plus": Row(lambda: linear(semiring=semirings.log_plus), 6, own_meaning=True),
    "ReserveLinear": Row(lambda: layers.ReserveLinear.of(linear(), 8, seed=1), 6, unused=("reserve",)),
    "Dense": Row(dense, 5),
    "Dense without bias": Row(lambda: dense(bias=False), 5),
    "BatchNorm": Row(lambda: normalization(layers.BatchNorm), 6),
    "Affine": Row(lambda: layers.Affine(6, np.arange(1.0, 7.0), 0.5, dtype=np.float64), 6),
    "LayerNorm": Row(lambda: normalization(layers.LayerNorm), 6, own_meaning=True),
    "Dropout": Row(lambda: layers.Dropout(0.4, seed=0), 4, random=True),
    "Gelu": Row(layers.Gelu, 4),
    "Identity": Row(layers.Identity, 4),
    "LeakyRelu": Row(lambda: layers.LeakyRelu(0.3), 4),
    "Relu": Row(layers.Relu, 4),
    "Sigmoid": Row(layers.Sigmoid, 4),
    "Silu": Row(layers.Silu, 4),
    "Softplus": Row(layers.Softplus, 4),
    "Tanh": Row(layers.Tanh, 4),
    "KWinners": Row(lambda: layers.KWinners(2), 5),
    "KWinners with boost": Row(lambda: layers.KWinners(2, boost=2.0, period=9, slots=3), 5, random=True),
    "KWinners into an array": Row(lambda: layers.KWinners(3, k_inference=2, dense=True), 5),
    "Threshold": Row(lambda: layers.Threshold(0.3), 4),
    "Chain": Row(lambda: layers.Chain(linear(), normalization_free(), dense()), 6),
    "Chain of one": Row(lambda: layers.Chain(layers.Tanh()), 4),
    "Residual": Row(lambda: layers.Residual(layers.Chain(linear(), layers.Tanh(), dense(5, 6))), 6),
    "Parallel": Row(lambda: layers.Parallel(linear(), dense(6, 5), linear(bias=False, seed=3)), 6),
    "Concatenate": Row(lambda: layers.Concatenate(linear(), layers.Tanh(), dense(6, 2)), 6),
    "Chain of sparse activations": Row(
        lambda: layers.Chain(
            linear(6, 9, 0.5), layers.KWinners(4), layers.Tanh(), linear(9, 8, 0.5, nnz=20), layers.Relu()
        ),
        6,
    ),
    "Parallel, sparse": Row(lambda: layers.Parallel(layers.KWinners(2), layers.Tanh(), layers.Relu()), 5),
    "Residual, sparse": Row(lambda: layers.Residual(layers.KWinners(2)), 5),
    "Concatenate, sparse": Row(
        lambda: layers.Concatenate(layers.KWinners(2), linear(5, 4), layers.Relu(), layers.Identity()), 5
    ),
    "nested": Row(
        lambda: layers.Chain(
            layers.Gelu(),
            layers.Concatenate(layers.Residual(layers.Chain(linear(6, 6), layers.Silu())), layers.Identity()),
            normalization_free(),
            dense(12, 3),
            layers.Dropout(0.5, seed=4),
        ),
        6,
        random=True,
    ),
}
ROWS = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)


def normalization_free() -> Layer:
    return layers.Parallel(layers.Tanh(), layers.LeakyRelu(0.2))


def batch(row: Row, size: int = 4, seed: int = 0) -> np.ndarray:
    """Numbers away from 0, where rectifiers have no derivative."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.1, 2.0, (size, row.width)) * rng.choice([-1.0, 1.0], (size, row.width))
    return np.asfortranarray(x)
