"""The strongest edges of a whole model by any scores: keep them, or count them layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_finite, check_int, check_real
from gbnn.layers import Layer
from gbnn.weights import Change, Weights

__all__ = ["Scores", "counts", "edged", "keep_strongest", "strongest"]

Array = np.ndarray[Any, Any]
Scores = Mapping[str, Array]
"""Name of a parameter -> one number for each of its edges, shape (nnz,); the strongest have the highest."""


def edged(model: Layer) -> dict[str, Weights]:
    """Return the parameters of a model that are edges, by name; ArgumentError if layers share them.

    Arrays of `Dense` layers, biases and the like are not among them.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology.at_init.keep import edged
    >>> edged(models.mlp([8, 4, 2], nnz=[6, 8], seed=0))
    {'0.weights': Weights(8 x 4, nnz=6, density=0.188, float32)}
    """
    if not isinstance(model, Layer):
        raise KindError("model", "a gbnn Layer", type(model).__name__)
    found = {name: p for name, p in model.parameters().items() if isinstance(p, Weights)}
    if len({id(p) for p in found.values()}) < len(found):
        raise ArgumentError("model", "layers that share no weights", f"some of {list(found)} do")
    return found


def keep_strongest(model: Layer, scores: Scores, nnz: int) -> dict[str, Change]:
    """Drop edges of a model, in place, until exactly `nnz` are left in all layers together.

    The edges of highest score stay, whichever layer they are in; at a tie those of the earlier layer, and in
    it those of the earlier position. Layers without scores (`Dense`) stay as they are and do not count.

    Parameters
    ----------
    model : Layer
        Its layers of edges are the ones that have scores.
    scores : mapping of str to ndarray, shape (nnz of the layer,)
        From `magnitude`, `snip`, `grasp`, `synflow`, or any others.
    nnz : int
        At most the edges there are.

    Returns
    -------
    dict of str to Change
        Where the edges of each layer went: ``change.carry(array)`` moves other per-edge arrays.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If the scores are not one finite number for each edge of the model; it is then as it was.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology import at_init
    >>> model = models.mlp([784, 300, 10], density=0.1, allocation="uniform", seed=0)
    >>> _ = at_init.keep_strongest(model, at_init.magnitude(model), 2382)  # of 23,820: 1 % of all places
    >>> model.nnz
    2382
    """
    weights = edged(model)
    sizes = {name: w.nnz for name, w in weights.items()}
    kept = strongest(scores, nnz)
    given = {name: len(score) for name, score in scores.items()}
    if given != sizes:
        raise ArgumentError("scores", f"one for each edge, {sizes}", given)
    nothing = np.empty(0, dtype=np.int64)
    return {name: w.rewire(np.flatnonzero(~kept[name]), nothing, nothing) for name, w in weights.items()}


def counts(scores: Scores, nnz: int) -> list[int]:
    """Return how many of the `nnz` strongest edges are in each layer: an allocation for a fresh graph.

    Parameters
    ----------
    scores : mapping of str to ndarray
        As for `keep_strongest`.
    nnz : int

    Returns
    -------
    list of int
        One a layer, in the order of `scores`; they sum to `nnz`.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology import at_init
    >>> wide = models.mlp([784, 300, 10], density=0.1, allocation="uniform", seed=0)
    >>> fresh = models.mlp([784, 300, 10], nnz=at_init.counts(at_init.magnitude(wide), 2382), seed=1)
    >>> fresh.nnz
    2382
    """
    return [int(np.count_nonzero(kept)) for kept in strongest(scores, nnz).values()]


def strongest(scores: Scores, nnz: int) -> dict[str, Array]:
    """Return for each layer which of its edges are among the `nnz` strongest of all, bool, shape (nnz,).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.at_init.keep import strongest
    >>> strongest({"a": np.array([1.0, 3.0]), "b": np.array([3.0, 2.0])}, 2)
    {'a': array([False,  True]), 'b': array([ True, False])}
    """
    if not isinstance(scores, Mapping):
        raise KindError(
            "scores", "a dictionary from the name of a parameter to scores", type(scores).__name__
        )
    each = {name: _checked(name, score) for name, score in scores.items()}
    every = np.concatenate([*each.values(), np.empty(0, dtype=np.float32)])
    count = check_int("nnz", nnz, 0)
    if count > every.size:
        raise ArgumentError("nnz", f"at most {every.size}, the edges that have scores", count)
    kept = np.zeros(every.size, dtype=bool)
    if count:
        limit = np.partition(every, every.size - count)[every.size - count]
        np.greater(every, limit, out=kept)
        equal = np.flatnonzero(every == limit)
        kept[equal[: count - np.count_nonzero(kept)]] = True
    ends = np.cumsum([score.size for score in each.values()])
    return dict(zip(each, np.split(kept, ends[:-1]), strict=True)) if each else {}


def _checked(name: str, score: Any) -> Array:
    where = f"scores of {name}"
    array = check_real(where, score)
    if array.ndim != 1:
        raise ArgumentError(where, "shape (nnz,)", f"shape {array.shape}")
    check_finite(where, array)
    return array
