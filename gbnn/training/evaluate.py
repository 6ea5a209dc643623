"""Use a trained model: outputs, predictions, probabilities, and how good they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.data import Batches
from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.layers import Layer
from gbnn.losses import Loss, cross_entropy
from gbnn.training.state import check_loss, check_model, model_dtype

__all__ = ["evaluate", "outputs", "predict", "predict_proba"]

Array = np.ndarray[Any, Any]

MAX_ENTRIES = 2**24
"""Most outputs of a layer held at a time: in wider models batches are smaller, or they would not fit."""


def outputs(model: Layer, x: Any, *, batch_size: int = 1024) -> Array:
    """Return what the model gives for every row of x.

    Parameters
    ----------
    model : Layer
    x : array_like or SciPy sparse, shape (rows, in_features)
        Rows of sparse x are made dense a batch at a time.
    batch_size : int
        At most so many rows at a time; fewer in very wide models.

    Returns
    -------
    ndarray, shape (rows, out_features)

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If x is empty, of another width, not numbers, or holds NaN or infinity.

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
        if result is None:
            result = np.empty((rows.rows, y.shape[1]), dtype=y.dtype, order="F")
        result[start : start + len(y)] = y
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
    return loss.predict(outputs(model, x, batch_size=batch_size))


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
    return loss.probabilities(outputs(model, x, batch_size=batch_size))


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
    y = outputs(model, x, batch_size=batch_size)
    value, _ = loss(y, target)
    return {"loss": value, **loss.metrics(y, target)}


def in_order(model: Layer, x: Any, batch_size: int = 1024) -> Batches:
    """Return the rows of x as batches in their order, checked to fit the model."""
    check_model(model)
    widths = [n or 1 for _, layer in model.walk() for n in (layer.in_features, layer.out_features)]
    most = min(check_int("batch_size", batch_size, 1), max(1, MAX_ENTRIES // max(widths)))
    rows = Batches(x, batch_size=most, shuffle=False, dtype=model_dtype(model))
    if model.in_features is not None and rows.features != model.in_features:
        raise ArgumentError("x", f"{model.in_features} columns, the model's inputs", rows.features)
    return rows


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
