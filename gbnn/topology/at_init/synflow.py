"""SynFlow: edges by the flow through them of a network of absolute weights, without data."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, NonFiniteError, check_int
from gbnn.layers import (
    Activation,
    Affine,
    BatchNorm,
    Chain,
    Concatenate,
    Dense,
    Dropout,
    Identity,
    Layer,
    LayerNorm,
    Linear,
    Parallel,
    Residual,
)
from gbnn.semirings import plus_times
from gbnn.topology.at_init.keep import edged, strongest
from gbnn.weights import Weights

__all__ = ["flow_of", "synflow"]

Array = np.ndarray[Any, Any]

MAX_FEATURES = 2**31
"""Activations are dense arrays: one of more features fits nowhere."""


def synflow(model: Layer, nnz: int, *, rounds: int = 100) -> dict[str, Array]:
    """Score edges by |w·∂R/∂w|, R the sum of the outputs of the network of absolute weights for inputs of 1.

    R is a sum over all paths from input to output, of the product of the |w| on each; an edge's score is the
    share of it that runs through the edge. Scores of a whole layer sum to R, whichever layer it is, so that
    small layers hold strong edges and pruning little by little empties none (Tanaka et al., 2020, "Pruning
    neural networks without any data by iteratively conserving synaptic flow"). Each round scores what is
    left and keeps the strongest; the edges left fall exponentially from all to `nnz`. The model itself stays
    as it is: give the result to `keep_strongest` with the same `nnz`, which is the last round.

    Parameters
    ----------
    model : Layer
        Containers, `Linear` in plus_times, `Dense`, activations, dropout and normalization.
    nnz : int
        How many edges will be kept.
    rounds : int
        Their default is 100; in one round all edges are scored once.

    Returns
    -------
    dict of str to ndarray of float64, shape (nnz,)
        An edge dropped before the last round has -1, below any other.

    Raises
    ------
    ArgumentError, KindError
        If `nnz` is more than there are edges, or a layer is of another kind.
    NonFiniteError
        If R overflows float64.

    Notes
    -----
    In the network of absolute weights there are no biases; activations are the identity, which ReLU is on
    numbers that are not negative; a normalization keeps its scales only; and `Affine`, which stands for the
    scaling of data, is left out. A `Dense` layer carries flow but has no edges to score. The cost of a round
    is that of a training step with a batch of one.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology import at_init
    >>> model = models.mlp([784, 300, 10], density=0.1, allocation="uniform", seed=0)
    >>> _ = at_init.keep_strongest(model, at_init.synflow(model, 500), 500)
    >>> model.nnz
    500
    """
    total = sum(w.nnz for w in edged(model).values())
    if check_int("nnz", nnz, 0) > total:
        raise ArgumentError("nnz", f"at most {total}, the edges there are", nnz)
    check_int("rounds", rounds, 1)
    flow = flow_of(model)
    ones = np.ones((1, _width(flow)))
    weights = edged(flow)
    kept = {name: np.ones(w.nnz, dtype=bool) for name, w in weights.items()}
    scores = _scored(flow, ones, kept)
    left = total
    for k in range(1, rounds):
        count = max(nnz, round(total * (nnz / total) ** (k / rounds))) if total else 0
        if count < left:
            kept, left = strongest(scores, count), count
            for name, w in weights.items():
                w.assign(w.values * kept[name])
            scores = _scored(flow, ones, kept)
    return scores


def _scored(flow: Layer, ones: Array, kept: dict[str, Array]) -> dict[str, Array]:
    """Return w·dR/dw for the edges that are kept and -1 for the others."""
    y, pullback = flow.forward(ones)
    with np.errstate(over="ignore"):
        total = float(y.sum())
    if not np.isfinite(total):
        raise NonFiniteError("synflow", "a finite sum over all paths", total)
    _, gradients = pullback(np.ones_like(y), inputs=False)
    scores = {}
    for name, w in edged(flow).items():
        scores[name] = np.where(kept[name], w.values * np.asarray(gradients[name]), -1.0)
    return scores


def flow_of(layer: Layer) -> Layer:
    """Return the linear network of a model's absolute weights, float64, with parameters of the same names.

    Examples
    --------
    >>> from gbnn import layers
    >>> from gbnn.topology.at_init.synflow import flow_of
    >>> flow_of(layers.Chain(layers.Dense([[1.0, -2.0]], bias=[3.0, 4.0]), layers.Tanh())).forward([[1.0]])[0]
    array([[1., 2.]])
    """
    if isinstance(layer, Linear) and layer.semiring is plus_times:
        if max(layer.weights.shape) > MAX_FEATURES:
            raise ArgumentError("synflow", f"layers of at most {MAX_FEATURES} neurons", layer)
        return Linear(Weights(layer.weights.edges, np.abs(layer.weights.values.astype(np.float64))))
    if isinstance(layer, Dense):
        return Dense(np.abs(layer.weights.astype(np.float64)))
    if isinstance(layer, BatchNorm | LayerNorm):
        return Affine(layer.scale.size, np.abs(layer.scale), dtype=np.float64)
    if isinstance(layer, Activation | Dropout | Affine):
        return Identity()
    if isinstance(layer, Chain | Concatenate | Parallel | Residual):
        return type(layer)(*map(flow_of, layer.layers))
    known = "containers, plus_times Linear, Dense, activations, Dropout, Affine and normalization"
    raise ArgumentError("synflow", known, layer)


def _width(flow: Layer) -> int:
    if flow.in_features is None:
        raise ArgumentError("synflow", "a model that knows how many inputs it has", flow)
    return flow.in_features
