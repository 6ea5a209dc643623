"""A small model of every kind of layer, and batches to train it on."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn import layers
from gbnn.layers import Layer
from gbnn.training import Step, train

Array = np.ndarray[Any, Any]
Pairs = list[tuple[Any, Any]]


def small(dtype: Any = np.float64, seed: int = 1) -> layers.Chain:
    """Linear, tanh, dropout, batch norm, linear: parameters with and without edges, buffers, randomness."""
    rng = np.random.default_rng(seed)
    return layers.Chain(
        layers.Linear.random(6, 9, nnz=20, dtype=dtype, seed=rng),
        layers.Tanh(),
        layers.Dropout(0.2, rng),
        layers.BatchNorm(9, dtype=dtype),
        layers.Linear.random(9, 3, nnz=13, dtype=dtype, seed=rng),
    )


def two_layers() -> layers.Chain:
    return layers.Chain(
        layers.Linear.random(6, 9, nnz=20, dtype=np.float64, seed=1),
        layers.Tanh(),
        layers.Linear.random(9, 3, nnz=13, dtype=np.float64, seed=2),
    )


def samples(rows: int = 25, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, 6)), rng.integers(3, size=rows)


def pairs(size: int = 10, rows: int = 25) -> Pairs:
    x, y = samples(rows)
    return [(x[k : k + size], y[k : k + size]) for k in range(0, rows, size)]


def run(model: Layer, batches: Any, **options: Any) -> list[Step]:
    return list(train(model, batches, **options))
