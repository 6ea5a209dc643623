"""Copies of a model's parameters and buffers, to go back to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.layers import Layer
from gbnn.topology import Memory
from gbnn.weights import Change, Weights

__all__ = ["Snapshot", "go_back", "take"]

Array = np.ndarray[Any, Any]
Snapshot = dict[str, Weights | Array]


def take(model: Layer) -> Snapshot:
    """Return copies of all parameters (with their edges) and buffers, by name.

    Edges never change, only a layer's choice of them: they are shared, and just the values are copied.

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
        name: Weights(value.edges, value.values.copy()) if isinstance(value, Weights) else value.copy()
        for name, value in _arrays(model).items()
    }


def go_back(
    model: Layer,
    snapshot: Snapshot,
    slots: Mapping[str, dict[str, Array]] | None = None,
    memory: Mapping[str, Memory] | None = None,
) -> None:
    """Put the copies back, in place; edges that have moved since are where they were.

    Parameters
    ----------
    model : Layer
    snapshot : Snapshot
        From `take` of the same model.
    slots : mapping, optional
        The optimizer's state (`State.slots`): it follows the edges that move, and starts at zero for others.
    memory : mapping, optional
        What rewiring remembers (`State.memory`): what is of edges follows them likewise.

    Raises
    ------
    ArgumentError
        If the snapshot is of another model.
    """
    now = _arrays(model)
    shapes, wanted = ({n: (type(a).__name__, a.shape) for n, a in held.items()} for held in (snapshot, now))
    if shapes != wanted:
        raise ArgumentError("snapshot", f"arrays {wanted}", shapes)
    for name, value in now.items():
        kept = snapshot[name]
        if isinstance(value, Weights) and isinstance(kept, Weights):
            if value.edges is not kept.edges:
                change = _same_edges(value, kept)
                own = {} if slots is None else slots[name]
                own.update({slot: change.carry(array) for slot, array in own.items()})
                if memory is not None and name in memory:
                    memory[name].follow(change)
            value.assign(kept.values)
        elif isinstance(value, np.ndarray) and isinstance(kept, np.ndarray):
            np.copyto(value, kept)


def _arrays(model: Layer) -> Snapshot:
    return model.parameters() | model.buffers()


def _same_edges(weights: Weights, kept: Weights) -> Change:
    """Rewire `weights` to have the edges of `kept`."""
    gone = np.flatnonzero(kept.edges.find(weights.sources, weights.targets) < 0)
    back = np.flatnonzero(weights.edges.find(kept.sources, kept.targets) < 0)
    return weights.rewire(gone, kept.sources[back], kept.targets[back])
