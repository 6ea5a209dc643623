"""Losses of rows that may have weights: the loss of each row and its derivative; their mean as a `Loss`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gbnn.losses import Loss, Pullback

__all__ = ["RowLoss", "huber", "sigmoid", "softmax", "squared"]

Array = np.ndarray[Any, Any]
OfRows = Callable[[Array, Any], tuple[Array, Pullback]]
"""``(y, target) -> (loss of each row in float64, function of the derivative by y)``."""


@dataclass(frozen=True, eq=False)
class RowLoss(Loss):
    """The mean over a batch of weight times loss; the target of a batch is the numbers of its rows.

    Parameters
    ----------
    of_rows : callable
        `softmax()`, `sigmoid()`, `squared` or `huber`.
    targets : ndarray or SciPy CSR, shape (rows, ...)
        Of all rows.
    weights : ndarray of float64, shape (rows,), optional
        Of mean 1, so that a batch's step is an unbiased one. None: all 1.
    """

    name: ClassVar[str] = "rows"
    of_rows: OfRows
    targets: Any
    weights: Array | None = None

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Any:
        return np.asarray(target)

    def _compute(self, y: Array, target: Array) -> tuple[float, Pullback]:
        each, derivative = self.of_rows(y, self.targets[target])
        share = np.full(len(y), 1.0) if self.weights is None else self.weights[target]
        share = share / len(y)

        def pullback() -> Array:
            dy: Array = derivative()
            dy *= share.astype(y.dtype)[:, None]
            return dy

        return float(each @ share), pullback

    def _predict(self, y: Array) -> Array:
        return y

    def _metrics(self, y: Array, target: Any) -> dict[str, float]:
        return {}


def softmax(smoothing: float) -> OfRows:
    """Negative log of the softmax at the true class; a share `smoothing` of it is spread over all classes."""

    def of_rows(y: Array, target: Array) -> tuple[Array, Pullback]:
        at = np.arange(len(y)), target
        shifted = y - y.max(axis=1)[:, None]
        exps = np.exp(shifted)
        sums = exps.sum(axis=1, dtype=np.float64)
        each = np.log(sums) - (1 - smoothing) * shifted[at]
        if smoothing:
            each -= smoothing * shifted.mean(axis=1, dtype=np.float64)

        def derivative() -> Array:
            dy: Array = exps / sums.astype(y.dtype)[:, None]
            if smoothing:
                dy -= y.dtype.type(smoothing / y.shape[1])
            dy[at] -= y.dtype.type(1 - smoothing)
            return dy

        return each, derivative

    return of_rows


def sigmoid(smoothing: float = 0.0) -> OfRows:
    """Negative log of the sigmoid, summed over labels; a share `smoothing` is spread over yes and no."""

    def of_rows(y: Array, target: Any) -> tuple[Array, Pullback]:
        at, ones = _entries(target, y.dtype)
        decay = np.exp(-np.abs(y))
        terms = np.log1p(decay)
        terms += np.maximum(y, 0)
        if smoothing:
            terms -= y.dtype.type(smoothing / 2) * y
        terms[at] -= y.dtype.type(1 - smoothing) * ones * y[at]

        def derivative() -> Array:
            dy: Array = np.where(y >= 0, 1, decay) / (1 + decay)
            if smoothing:
                dy -= y.dtype.type(smoothing / 2)
            dy[at] -= y.dtype.type(1 - smoothing) * ones
            return dy

        return terms.sum(axis=1, dtype=np.float64), derivative

    return of_rows


def _entries(target: Any, dtype: Any) -> tuple[Any, Array]:
    """Return the places where labels are stored (all, if dense), as an index, and what is there."""
    if not sp.issparse(target):
        return ..., np.asarray(target, dtype=dtype).reshape(len(target), -1)
    rows = np.repeat(np.arange(target.shape[0]), np.diff(target.indptr))
    return (rows, target.indices), target.data.astype(dtype)


def squared(y: Array, target: Array) -> tuple[Array, Pullback]:
    """Half the squared difference, a mean over outputs."""
    gap = y - target
    return np.square(gap, dtype=np.float64).mean(axis=1) / 2, lambda: gap / y.dtype.type(y.shape[1])


def huber(y: Array, target: Array) -> tuple[Array, Pullback]:
    """Half the squared difference up to 1, a straight line beyond (Huber, 1964); a mean over outputs."""
    gap = y - target
    size = np.abs(gap)
    near = np.minimum(size, 1)
    each = (near * (size - near / 2)).mean(axis=1, dtype=np.float64)
    return each, lambda: np.clip(gap, -1, 1) / y.dtype.type(y.shape[1])
