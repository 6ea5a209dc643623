"""The best labels of every row: of a model by `top_k`, of its outputs by `ranked`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.errors import NonFiniteError, check_int
from gbnn.layers import Layer, as_activations
from gbnn.layers.head import ManyLabels
from gbnn.layers.scores import Scores
from gbnn.rows import SparseRows, is_sparse
from gbnn.training.state import check_model, model_dtype

__all__ = ["ranked", "top_k"]

Array = np.ndarray[Any, Any]

# Most outputs of an ordinary layer held at a time.
_MAX_ENTRIES = 2**24


def top_k(model: Layer, x: Any, k: int = 5, *, batch_size: int = 256) -> tuple[Array, Array]:
    """Return the k best labels of every row, and their scores, best first.

    Of a model that ends in `ManyLabels` no row of scores is ever held; of any other, those of one batch.

    Parameters
    ----------
    model : Layer
    x : array_like or anything sparse, shape (rows, in_features)
    k : int
    batch_size : int
        At most so many rows at a time; fewer in models with very wide arrays.

    Returns
    -------
    labels : ndarray of int64, shape (rows, k)
        -1 where there are fewer: of outputs, of entries of a sparse output's row, or scores above -inf.
    scores : ndarray, shape (rows, k)
        -inf there.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If x does not fit the model, has no rows, or a score is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> from gbnn.training.ranking import top_k
    >>> top_k(layers.Linear.from_dense([[1.0, 3.0, 3.0, 2.0]]), np.ones((1, 1)), k=3)[0]
    array([[1, 2, 3]])
    """
    check_model(model)
    count = check_int("k", k, 1)
    lazy = [layer for _, layer in model.walk() if isinstance(layer, ManyLabels)]
    wide = [layer.out_features or 1 for _, layer in model.walk() if layer not in lazy]
    step = check_int("batch_size", batch_size, 1)
    if not is_sparse(x):
        x = as_activations("x", x, model.in_features, model_dtype(model))
        step = min(step, max(1, _MAX_ENTRIES // max(wide, default=1)))
    elif not sp.issparse(x) or x.format != "csr":
        x = SparseRows.of(x, where="x")
    labels = np.full((x.shape[0], count), -1, dtype=np.int64)
    scores = np.full((x.shape[0], count), -np.inf, dtype=model_dtype(model))
    for start in range(0, x.shape[0], step):
        some = slice(start, start + step)
        part = x.take(some) if isinstance(x, SparseRows) else x[some]
        part = as_activations("x", part, model.in_features, model_dtype(model))
        with np.errstate(all="ignore"):
            y, _ = model.forward(part)
        labels[some], scores[some] = ranked(y, count)
    return labels, scores


def ranked(y: Any, k: int) -> tuple[Array, Array]:
    """Return the k best labels of each row of outputs, and their scores: `top_k` of what a model gave.

    Parameters
    ----------
    y : ndarray, anything sparse, or Scores, shape (rows, labels)
    k : int

    Examples
    --------
    >>> from gbnn.training.ranking import ranked
    >>> ranked([[0.5, 2.0]], 3)
    (array([[ 1,  0, -1]]), array([[ 2. ,  0.5, -inf]]))
    """
    count = check_int("k", k, 1)
    if isinstance(y, Scores):
        return y.top(count)
    batch = as_activations("scores", y)
    stored = batch.values if isinstance(batch, SparseRows) else batch
    if np.isnan(stored).any():
        raise NonFiniteError("scores", "numbers", f"{np.count_nonzero(np.isnan(stored))} NaN")
    if isinstance(batch, SparseRows):
        rows, columns, values = batch.rows, batch.columns, batch.values
    else:
        rows, columns, values = _candidates(batch, count)
    some = values > -np.inf
    rows, columns, values = rows[some], columns[some], values[some]
    order = np.lexsort((columns, -values, rows))
    rows = rows[order]
    place = np.arange(rows.size) - np.searchsorted(rows, rows)
    first = place < count
    labels = np.full((len(batch), count), -1, dtype=np.int64)
    scores = np.full((len(batch), count), -np.inf, dtype=batch.dtype)
    labels[rows[first], place[first]] = columns[order][first]
    scores[rows[first], place[first]] = values[order][first]
    return labels, scores


def _candidates(y: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the entries that are at least as large as the k-th of their row: ties are decided later."""
    if k >= y.shape[1]:
        rows, columns = (part.ravel() for part in np.indices(y.shape))
    else:
        bound = np.partition(y, y.shape[1] - k, axis=1)[:, y.shape[1] - k]
        rows, columns = np.nonzero(y >= bound[:, None])
    return rows, columns, y[rows, columns]
