"""Scores of edges at initialisation by weights and gradients: magnitude, SNIP, GraSP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_finite, check_float
from gbnn.layers import Layer, Linear, as_batch
from gbnn.losses import Loss
from gbnn.semirings import plus_times
from gbnn.topology.at_init.keep import edged

__all__ = ["grasp", "magnitude", "snip"]

Array = np.ndarray[Any, Any]
Batches = Iterable[tuple[Any, Any]]

STEP = 1e-7
"""How far `grasp` moves the weights, relative to their norm. The error of a central difference in float64 is
then about 1e-9 of the gradient, and hardly any unit of a ReLU network passes its kink on the way."""


def magnitude(model: Layer) -> dict[str, Array]:
    """Score edges by |w|.

    Parameters
    ----------
    model : Layer

    Returns
    -------
    dict of str to ndarray, shape (nnz,)
        For every parameter of edges.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> from gbnn.topology import at_init
    >>> at_init.magnitude(layers.Linear.from_dense(np.array([[0.5, -2.0]])))
    {'weights': array([0.5, 2. ])}
    """
    return {name: np.abs(weights.values) for name, weights in edged(model).items()}


def snip(model: Layer, batches: Batches, loss: Loss) -> dict[str, Array]:
    """Score edges by |w·g|, how fast the loss changes as the edge goes (Lee et al., 2019, "SNIP").

    Parameters
    ----------
    model : Layer
        Its layers of edges compute in plus_times. It runs as in evaluation: no dropout, running statistics.
    batches : iterable of (x, target)
        The gradient is that of the mean over all their samples, before |w·g| is taken.
    loss : Loss

    Returns
    -------
    dict of str to ndarray of float64, shape (nnz,)
        For every parameter of edges; not divided by their sum, as the paper does.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If there are no batches, one does not fit, or a gradient is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, losses
    >>> from gbnn.topology import at_init
    >>> model = layers.Linear.from_dense(np.array([[1.0], [-2.0]]))
    >>> at_init.snip(model, [(np.array([[1.0, 3.0]]), np.array([[0.0]]))], losses.mse)
    {'weights': array([10., 60.])}
    """
    _check(model, loss)
    (gradient,) = _gradients([model], batches, loss, 1.0)
    return {name: np.abs(w.values * gradient[name]) for name, w in edged(model).items()}


def grasp(model: Layer, batches: Batches, loss: Loss, temperature: float = 200.0) -> dict[str, Array]:
    """Score edges by w·(Hg), which keeps the gradient flow g·g (Wang et al., 2020, "GraSP").

    Without the edge, g·g falls by about twice its score: edges below 0 hinder the flow and go first. g and H
    are derivatives of the loss, of outputs divided by `temperature`, by the edges alone (biases and `Dense`
    layers are fixed). The sign is that of Tanaka et al.'s reference implementation, the highest stay; the
    paper writes -w·(Hg), of which the highest go.

    Parameters
    ----------
    model, batches, loss
        As for `snip`. Batches are gone through twice, an iterator is made a list for that.
    temperature : float
        Above 0; the paper's default is 200.

    Returns
    -------
    dict of str to ndarray of float64, shape (nnz,)
        For every parameter of edges, of either sign.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        As for `snip`.

    Notes
    -----
    Hg is a central difference of gradients along g, in a float64 copy of the model: two gradients, nothing of
    size nnz x nnz. See `STEP` for its error. Where a unit of ReLU is at its very kink there is no H; what
    comes out then is as arbitrary as automatic differentiation is there.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, losses
    >>> from gbnn.topology import at_init
    >>> model = layers.Linear.from_dense(np.array([[1.0], [-2.0]]))  # g = -10, -30; H = 2, 6; 6, 18
    >>> batch = np.array([[1.0, 3.0]]), np.array([[0.0]])
    >>> at_init.grasp(model, [batch], losses.mse, temperature=1)["weights"].round(4)
    array([-200., 1200.])
    """
    _check(model, loss)
    divisor = check_float("temperature", temperature, 0, open_low=True)
    if isinstance(batches, Iterator):
        batches = list(batches)
    centre = in_float64(model)
    (gradient,) = _gradients([centre], batches, loss, divisor)
    weights = edged(centre)
    length = _norm(list(gradient.values()))
    step = STEP * (_norm([w.values for w in weights.values()]) or 1.0) / (length or 1.0)
    moved = []
    for sign in (1, -1):
        copy = in_float64(model)
        for name, w in edged(copy).items():
            w.add(sign * step * gradient[name])
        moved.append(copy)
    # Both in one pass: batches that are drawn anew in each pass are the same for both.
    ahead, behind = _gradients(moved, batches, loss, divisor)
    return {name: w.values * (ahead[name] - behind[name]) / (2 * step) for name, w in weights.items()}


def in_float64(layer: Layer) -> Layer:
    """Return a float64 copy of a layer that shares nothing but the graph of its edges.

    Examples
    --------
    >>> from gbnn import layers
    >>> from gbnn.topology.at_init.gradients import in_float64
    >>> in_float64(layers.Linear.random(10, 10, nnz=5, seed=0)).weights.dtype
    dtype('float64')
    """
    config = layer.config()
    if "dtype" in config:
        config["dtype"] = "float64"
    own = {**layer.own_parameters(), **layer.own_buffers()}
    arrays = {name: value.astype(np.float64) for name, value in own.items()}
    return type(layer).restore(
        config, arrays, {k: in_float64(child) for k, child in layer.children().items()}
    )


def _check(model: Layer, loss: Loss) -> None:
    edged(model)
    for path, layer in model.walk():
        if isinstance(layer, Linear) and layer.semiring is not plus_times:
            # Elsewhere no edge is not the same as one of weight 0.
            raise ArgumentError(f"layer {path or 'model'}", "a plus_times layer", layer)
    if not isinstance(loss, Loss):
        raise KindError("loss", "a gbnn Loss, such as losses.cross_entropy", repr(loss))


def _norm(arrays: list[Array]) -> float:
    return float(np.sqrt(sum(float(np.vdot(a, a)) for a in arrays)))


def _gradients(
    models: list[Layer], batches: Batches, loss: Loss, temperature: float
) -> list[dict[str, Array]]:
    """Return for each model the gradients by its edges of the mean loss of all samples, in float64."""
    if not isinstance(batches, Iterable):
        raise KindError("batches", "an iterable of pairs (x, target)", type(batches).__name__)
    totals = [{name: np.zeros(w.nnz) for name, w in edged(model).items()} for model in models]
    rows = 0
    for k, batch in enumerate(batches):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ArgumentError(f"batches[{k}]", "a pair (x, target)", type(batch).__name__)
        x = as_batch(f"batches[{k}]", batch[0], models[0].in_features)
        check_finite(f"batches[{k}]", x)
        for model, total in zip(models, totals, strict=True):
            y, pullback = model.forward(x)
            with np.errstate(all="ignore"):  # what is not finite shows in the gradients
                _, derivative = loss(y / temperature, batch[1])
                _, gradients = pullback(derivative() / temperature, inputs=False)
                for name, sums in total.items():
                    sums += len(x) * np.asarray(gradients[name], dtype=np.float64)
        rows += len(x)
    if not rows:
        raise ArgumentError("batches", "at least one batch", "none")
    for total in totals:
        for name, sums in total.items():
            sums /= rows
            check_finite(f"gradient of {name}", sums)
    return totals
