"""Losses of any number of labels a sample: binary cross entropy; what the multi-label ones share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError
from gbnn.layers.scores import Scores
from gbnn.losses.by_row import find, first_best, labelled, standing_for
from gbnn.losses.checks import array_of, csr_of, first_of, matrix_of
from gbnn.losses.loss import Derivative, Loss
from gbnn.rows import SparseRows

__all__ = ["BinaryCrossEntropy", "MultiLabel", "precision_at_1"]

Array = np.ndarray[Any, Any]


class MultiLabel(Loss):
    """Losses of any number of labels a sample: targets in [0, 1], dense or SciPy CSR (which stays sparse)."""

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Any:
        if sp.issparse(target):
            numbers = csr_of(target)
            entries = numbers.data
        else:
            numbers = entries = array_of("target", target, "biuf", "numbers in [0, 1]")
        numbers = matrix_of(numbers, rows, outputs)
        if entries.size and not (entries.min() >= 0 and entries.max() <= 1):  # NaN fails too
            bad = ~((entries >= 0) & (entries <= 1))
            raise ArgumentError("target", "numbers in [0, 1]", first_of(numbers, bad))
        return numbers

    def _metrics_rows(self, y: SparseRows, target: Any) -> dict[str, float]:
        rows, columns, _ = labelled(target)
        reached = float((find(y, rows, columns) >= 0).mean()) if rows.size else float("nan")
        return {**precision_at_1(first_best(y), target), "reached": reached}

    def _metrics_scores(self, y: Scores, target: Any) -> dict[str, float]:
        return precision_at_1(y.top(1)[0][:, 0], target)

    def _predict_rows(self, y: SparseRows) -> Any:
        above = y.where(y.values > 0)
        return sp.csr_array((np.ones(above.nnz, dtype=bool), above.columns, above.starts), shape=y.shape)


@dataclass(frozen=True)
class BinaryCrossEntropy(MultiLabel):
    """Negative log of the sigmoid of each label, a mean over all entries, as `torch.nn.BCEWithLogitsLoss`.

    Targets are 0, 1 or between, for any number of labels a sample; one in SciPy CSR stays sparse.

    Parameters
    ----------
    reduction : {"entries", "rows"}
        Mean over all entries, or sum over the labels of a row and mean over rows: where labels are many, a
        mean over all of them leaves next to nothing of the gradient of each.

    Notes
    -----
    Of sparse outputs those that are not there do not count, but for true labels: each counts log 2, what an
    output of 0 costs, and has no gradient. `metrics` says how many are ``reached``.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.BinaryCrossEntropy()(np.zeros((1, 2)), np.array([[1, 0]]))
    >>> round(value, 4), pullback()
    (0.6931, array([[-0.25,  0.25]]))
    """

    name: ClassVar[str] = "binary_cross_entropy"
    reduction: str = "entries"

    def __post_init__(self) -> None:
        if self.reduction not in ("entries", "rows"):
            raise ArgumentError("reduction", "'entries' or 'rows'", repr(self.reduction))

    def _compute(self, y: Array, target: Any) -> tuple[float, Derivative]:
        at, ones = _stored(target, y.dtype)
        norm = len(y) if self.reduction == "rows" else y.size
        # log(1 + exp(y)) - t y = (max(y, 0) - t y) + log(1 + exp(-|y|)): no term is below 0, so none cancel.
        terms: Array = np.maximum(y, 0)
        terms[at] -= ones * y[at]
        value = float(terms.sum(dtype=np.float64))
        decay = _decay(y)
        value += float(np.log1p(decay, out=terms).sum(dtype=np.float64))

        def pullback() -> Array:
            dy = _sigmoid(y, decay)
            dy[at] -= ones
            dy /= norm
            return dy

        return value / norm, pullback

    def _compute_rows(
        self, y: SparseRows, target: Any, chance: Array | None = None
    ) -> tuple[float, Derivative]:
        rows, columns, ones = labelled(target)
        at = find(y, rows, columns)
        here = at >= 0
        missed = float(ones[~here].sum())
        true = np.zeros(y.nnz, dtype=y.dtype)
        true[at[here]] = ones[here]
        each = standing_for(y, chance)
        norm = len(y) if self.reduction == "rows" else max(float(each.sum()) + np.count_nonzero(~here), 1.0)
        decay = _decay(y.values)
        terms = np.maximum(y.values, 0) - true * y.values + np.log1p(decay)
        value = float((each * terms).sum()) + missed * float(np.log(2.0))

        def derivative() -> Array:
            dy = _sigmoid(y.values, decay) - true
            dy *= (each / norm).astype(y.dtype)
            return dy

        return value / norm, derivative

    def _predict(self, y: Array) -> Array:
        return y > 0

    def _metrics(self, y: Array, target: Any) -> dict[str, float]:
        at, ones = _stored(target, y.dtype)
        truth = np.zeros(y.shape, dtype=bool, order="F")
        truth[at] = ones > 0.5
        return {"accuracy": float(((y > 0) == truth).mean())}

    def _probabilities(self, y: Array) -> Array:
        return _sigmoid(y, _decay(y))


def precision_at_1(best: Array, target: Any) -> dict[str, float]:
    """Return the metric of that name: how often the label said to be the best, shape (batch,), is one."""
    rows, columns, _ = labelled(target)
    right = np.zeros(len(best), dtype=bool)
    right[rows[columns == best[rows]]] = True
    return {"precision_at_1": float(right.mean())}


def _stored(target: Any, dtype: np.dtype[Any]) -> tuple[Any, Array]:
    """Return the places where a target has entries (all, if it is dense), as an index, and the entries."""
    if not sp.issparse(target):
        return ..., np.asfortranarray(target, dtype=dtype)
    rows = np.repeat(np.arange(target.shape[0]), np.diff(target.indptr))
    return (rows, target.indices), target.data.astype(dtype)


def _decay(y: Array) -> Array:
    """Return exp(-|y|), which cannot overflow."""
    decay: Array = np.abs(y)
    return np.exp(np.negative(decay, out=decay), out=decay)


def _sigmoid(y: Array, decay: Array) -> Array:
    """Return 1 / (1 + exp(-y)) from ``decay = exp(-|y|)``."""
    # 1 / (1 + decay) from 0 up and decay / (1 + decay) below; several times as fast as `where`.
    sigmoid: Array = np.maximum(decay, y >= 0)
    sigmoid /= 1 + decay
    return sigmoid
