"""Use a trained model: outputs, predictions, probabilities, and how good they are."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from gbnn.data import Batches
from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.layers import Chain, Layer, ManyLabels, Scores
from gbnn.losses import Loss, cross_entropy
from gbnn.rows import SparseRows
from gbnn.training.state import check_loss, check_model, model_dtype

__all__ = ["evaluate", "outputs", "predict", "predict_proba"]

Array = np.ndarray[Any, Any]

MAX_ENTRIES = 2**24
"""Most dense outputs of a layer held at a time: wider models take fewer rows, or they would not fit."""

WIDE = MAX_ENTRIES // 2**10
"""Layers up to here leave the usual 1,024 rows at a time, dense as they may be."""

MANY = 64
"""Rows at a time of models of many labels: what is computed of each may be as long as they are many."""

MAX_RESULT = 2**31
"""Most entries of sparse outputs that are made dense."""


def outputs(model: Layer, x: Any, *, batch_size: int = 1024) -> Array:
    """Return what the model gives for every row of x.

    Parameters
    ----------
    model : Layer
    x : array_like or sparse, shape (rows, in_features)
        Anything `gbnn.data.Batches` takes; sparse x goes through the model as `SparseRows`.
    batch_size : int
        At most so many rows at a time; fewer where layers give wide dense outputs.

    Returns
    -------
    ndarray, shape (rows, out_features)
        Sparse outputs are made dense, 0 where there is no entry.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If x is empty, of another width, not numbers, or holds NaN or infinity; if the outputs are sparse and
        have more than 2**31 entries as an array.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import models, training
    >>> model = models.mlp([20, 50, 3], density=0.2, seed=0)
    >>> training.outputs(model, np.zeros((5, 20))).shape
    (5, 3)
    """
    rows = in_order(model, x, batch_size)
    result: Array | None = None
    start = 0
    for batch, _ in rows:
        with np.errstate(all="ignore"):  # what overflows is infinite, and shows
            y = model.forward(batch)[0]
        if isinstance(y, Scores):
            y = y.dense()
        if isinstance(y, SparseRows) and rows.rows * y.shape[1] > MAX_RESULT:
            shape = f"{rows.rows} x {y.shape[1]}, sparse"
            raise ArgumentError("model", f"outputs that fit in an array of {MAX_RESULT} entries", shape)
        if result is None:
            result = np.empty((rows.rows, y.shape[1]), dtype=y.dtype, order="F")
        result[start : start + len(y)] = y.to_dense() if isinstance(y, SparseRows) else y
        start += len(y)
    return np.asarray(result)


def predict(model: Layer, x: Any, *, loss: Loss = cross_entropy, batch_size: int = 1024) -> Array:
    """Return the predicted class of every row, or what else the outputs mean under `loss`.

    Parameters and errors are those of `outputs`; `loss` is the one the model was trained with.

    Returns
    -------
    ndarray
        int64 classes, shape (rows,), for `cross_entropy` and `hinge`; bool, shape (rows, labels), for
        `binary_cross_entropy`; the outputs themselves in regression.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import models, training
    >>> model = models.mlp([20, 50, 3], density=0.2, seed=0)
    >>> training.predict(model, np.zeros((5, 20)))
    array([0, 0, 0, 0, 0])
    """
    check_loss(loss)
    predicted: Array = loss.predict(outputs(model, x, batch_size=batch_size))
    return predicted


def predict_proba(model: Layer, x: Any, *, loss: Loss = cross_entropy, batch_size: int = 1024) -> Array:
    """Return the probability of every class (or label), shape (rows, out_features).

    Raises ArgumentError for a loss that has no probabilities, and what `outputs` raises.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import models, training
    >>> model = models.mlp([20, 50, 4], density=0.2, seed=0)
    >>> training.predict_proba(model, np.zeros((1, 20)))
    array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """
    check_loss(loss)
    probabilities: Array = loss.probabilities(outputs(model, x, batch_size=batch_size))
    return probabilities


def evaluate(
    model: Layer, data: tuple[Any, Any], *, loss: Loss = cross_entropy, batch_size: int = 1024
) -> dict[str, float]:
    """Return the loss and the metrics of a model on data.

    Parameters
    ----------
    model : Layer
    data : (x, target)
    loss : Loss
    batch_size : int

    Returns
    -------
    dict of str to float
        ``{"loss": ..., "accuracy": ...}`` for classes and labels, ``{"loss": ..., "r2": ...}`` in regression.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import models, training
    >>> model = models.mlp([20, 50, 4], density=0.2, seed=0)
    >>> training.evaluate(model, (np.zeros((8, 20)), np.zeros(8, dtype=int)))["accuracy"]
    1.0
    """
    check_model(model)
    check_loss(loss)
    x, target = pair("data", data)
    target = loss.check_target(target, rows_of("x", x), model.out_features)
    if any(isinstance(layer, ManyLabels) for _, layer in model.walk()):
        return _by_batch(model, x, target, loss, min(batch_size, MANY))
    y = outputs(model, x, batch_size=batch_size)
    value, _ = loss(y, target)
    return {"loss": value, **loss.metrics(y, target)}


def _by_batch(model: Layer, x: Any, target: Any, loss: Loss, batch_size: int) -> dict[str, float]:
    """Return means over batches: scores of many labels are never held for all rows."""
    loss = copy.deepcopy(loss)  # one that draws is not to draw on in training what evaluation took
    rows = in_order(model, x, batch_size)
    sums: dict[str, float] = {}
    start = 0
    for batch, _ in rows:
        y = model.forward(batch)[0]
        part = target[start : start + len(y)]
        value, _ = loss(y, part)
        for name, number in {"loss": value, **loss.metrics(y, part)}.items():
            sums[name] = sums.get(name, 0.0) + number * len(y)
        start += len(y)
    return {name: total / rows.rows for name, total in sums.items()}


def in_order(model: Layer, x: Any, batch_size: int = 1024) -> Batches:
    """Return the rows of x as batches in their order, checked to fit the model."""
    check_model(model)
    size = check_int("batch_size", batch_size, 1)
    rows = Batches(x, batch_size=1, shuffle=False, dtype=model_dtype(model))
    if model.in_features is not None and rows.features != model.in_features:
        raise ArgumentError("x", f"{model.in_features} columns, the model's inputs", rows.features)
    most = max(1, MAX_ENTRIES // _dense_width(model, rows))
    rows.batch_size = min(size, most)
    return rows


def _dense_width(model: Layer, rows: Batches) -> int:
    """Return how wide the widest activation is that is an array.

    Where a layer may be so wide that it matters, one row goes through the model: only that shows which
    activations are sparse. Of layers inside others than `Chain` the widths are taken as they are.
    """
    known = [n or 1 for _, layer in model.walk() for n in (layer.in_features, layer.out_features)]
    if max(known) <= WIDE:
        return max(known)
    x, _ = next(iter(rows))
    return _widest(model, x)[1]


def _widest(layer: Layer, x: Any) -> tuple[Any, int]:
    """Return the output of a layer, and the width of the widest array on the way to it."""
    widest = _width(x)
    if isinstance(layer, Chain):
        for child in layer.children().values():
            x, width = _widest(child, x)
            widest = max(widest, width)
        return x, widest
    for path, inner in layer.walk():
        if path:
            widest = max(
                widest, *(n or 1 for n in (inner.in_features, inner.out_features) if (n or 1) <= MAX_ENTRIES)
            )
    with np.errstate(all="ignore"):
        y = layer.forward(x)[0]
    return y, max(widest, _width(y))


def _width(x: Any) -> int:
    return 1 if isinstance(x, SparseRows | Scores) else int(x.shape[1])


def rows_of(where: str, x: Any) -> int:
    """Return the number of rows of an array, list or sparse matrix; raise if there are none."""
    shape = getattr(x, "shape", None)
    try:
        rows = len(x) if shape is None else int(shape[0]) if shape else 0
    except TypeError:
        raise KindError(where, "samples, one a row", type(x).__name__) from None
    if rows == 0:
        raise ArgumentError(where, "samples, one a row", "none" if shape is None else f"shape {shape}")
    return rows


def pair(where: str, data: Any) -> tuple[Any, Any]:
    """Return data as (x, target), or raise."""
    if not isinstance(data, tuple | list):
        raise KindError(where, "a pair (x, target)", type(data).__name__)
    if len(data) != 2:
        raise ArgumentError(where, "a pair (x, target)", f"a {type(data).__name__} of {len(data)}")
    return data[0], data[1]
