"""Copies of a model's parameters and buffers, to go back to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from gbnn.layers import Layer
from gbnn.weights import Weights

__all__ = ["Snapshot", "go_back", "take"]

Snapshot = dict[str, dict[str, Any]]


def take(model: Layer) -> Snapshot:
    """Return copies of all parameters (with their edges) and buffers, by layer and name.

    Examples
    --------
    >>> from gbnn import layers
    >>> from gbnn.training import snapshot
    >>> layer = layers.Linear.random(4, 3, nnz=5, seed=0)
    >>> before, first = snapshot.take(layer), layer.weights.values[0]
    >>> layer.weights.assign(0.0)
    >>> snapshot.go_back(layer, before)
    >>> bool(layer.weights.values[0] == first)
    True
    """
    return {
        path: {name: copy.deepcopy(value) for name, value in (layer.own_parameters() | layer.own_buffers()).items()}
        for path, layer in model.walk()
    }


def go_back(model: Layer, snapshot: Snapshot) -> None:
    """Put the copies back, in place; edges that have moved since are where they were."""
    for path, layer in model.walk():
        for name, value in snapshot[path].items():
            if isinstance(value, Weights):
                setattr(layer, name, copy.deepcopy(value))
            else:
                np.copyto(getattr(layer, name), value)
