"""The network that `gbnn train` makes of its options and its data."""

from __future__ import annotations

from argparse import Namespace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data import DATASETS, Dataset
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, check_float
from gbnn.layers import Affine, Chain, Dense, Layer, Linear
from gbnn.models import mlp
from gbnn.weights import Weights

__all__ = ["places", "sized", "standardized"]

Array = np.ndarray[Any, Any]


MOST = 2**23
"""Edges of the hidden layers of a network whose size nobody has asked for."""


def sized(options: Namespace, dataset: Dataset, x: Any) -> Chain:
    """Return a network of the widths and the number of edges that were asked for.

    Of sparse samples x, only features that occur get edges.
    """
    widths = [dataset.features, *options.hidden, dataset.outputs]
    shared: dict[str, Any] = {
        "activation": options.activation,
        "allocation": options.allocation,
        "dropout": options.dropout,
        "normalize": options.normalize,
        "seed": options.seed,
    }
    if not sp.issparse(x):
        return _of_widths(options, widths, shared)
    columns = np.flatnonzero(np.bincount(x.indices)) if x.shape[1] <= 2**31 else np.unique(x.indices)
    if columns.size in (0, x.shape[1]):
        return _of_widths(options, widths, shared)
    return _widened(_of_widths(options, [columns.size, *widths[1:]], shared), columns, dataset.features)


def _widened(model: Chain, columns: Array, features: int) -> Chain:
    """Return a network whose inputs are the `columns` of so many features; the others have no edges."""
    first, *others = model
    bias = first.own_parameters().get("bias")
    if isinstance(first, Dense):
        first = Linear.from_dense(first.weights, threshold=-1.0)
    assert isinstance(first, Linear)  # noqa: S101 (mlp begins with one of the two)
    weights = first.weights
    edges = Edges(columns[weights.sources], weights.targets, (features, weights.out_features))
    return Chain(Linear(Weights(edges, weights.values.copy()), bias), *others)


def _of_widths(options: Namespace, widths: list[int], shared: dict[str, Any]) -> Chain:
    if options.nnz is not None:
        return mlp(widths, nnz=options.nnz[0] if len(options.nnz) == 1 else options.nnz, **shared)
    density = options.density
    if density is None:
        density = min(0.05, MOST / max(1, sum(a * b for a, b in pairwise(widths[:-1]))))
    if not options.hidden:
        return mlp(widths, density=density, **shared)
    # The hidden layers get their share exactly, divided by the allocation; the small head is dense.
    density = check_float("--density", density, 0, 1, open_low=True)
    body = mlp(widths[:-1], density=density, **shared)
    counts = [layer.own_nnz for layer in _weighted(body)]
    return mlp(widths, nnz=[*counts, widths[-2] * widths[-1]], **shared)


def standardized(options: Namespace, model: Chain, x: Any, y: Any, *, numbers: bool) -> Chain:
    """Put a scale and shift of every feature before a network, and that of numbers to predict after it.

    They are part of the model and so of its file. By default for dense files: pixels of the named data sets
    have their scale, and sparse rows would fill up.
    """
    wanted = options.standardize
    if wanted is None:
        wanted = options.data not in DATASETS and not sp.issparse(x)
    if not wanted:
        return model
    if sp.issparse(x):
        raise ArgumentError(
            "--standardize", "dense samples: a shift makes every zero a number", "sparse ones"
        )
    layers: list[Layer] = [Affine.standardizing(x), *model]
    if numbers:
        dense = y.toarray() if sp.issparse(y) else np.asarray(y)
        layers.append(Affine.standardizing(dense.reshape(dense.shape[0], -1)).inverse())
    return Chain(*layers)


def _weighted(model: Layer) -> list[Layer]:
    """Return the layers that have edges, or could."""
    return [layer for _, layer in model.walk() if isinstance(layer, (Dense, Linear))]


def places(model: Layer) -> int:
    """Return how many edges there could be in all layers."""
    return sum((layer.in_features or 0) * (layer.out_features or 0) for layer in _weighted(model))
