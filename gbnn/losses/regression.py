"""Losses of the difference to a number an output: mean squared error and Huber."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gbnn.errors import check_finite, check_float
from gbnn.losses.checks import array_of, matrix_of
from gbnn.losses.loss import Derivative, Loss
from gbnn.rows import SparseRows

__all__ = ["Huber", "MeanSquaredError"]

Array = np.ndarray[Any, Any]


class _Regression(Loss):
    """Losses of the difference to a number an output."""

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Array:
        numbers: Array = matrix_of(
            array_of("target", target, "biuf", "a dense array of numbers"), rows, outputs
        )
        check_finite("target", numbers)
        return numbers

    # The target is an array of all outputs, so y may be one, too: an absent output is 0, and constant.
    def _compute_rows(
        self, y: SparseRows, target: Array, chance: Array | None = None
    ) -> tuple[float, Derivative]:
        value, derivative = self._compute(y.to_dense(), target)
        return value, lambda: derivative()[y.rows, y.columns]

    def _predict(self, y: Array) -> Array:
        return y

    def _predict_rows(self, y: SparseRows) -> SparseRows:
        return y

    def _metrics_rows(self, y: SparseRows, target: Array) -> dict[str, float]:
        return self._metrics(y.to_dense(), target)

    def _metrics(self, y: Array, target: Array) -> dict[str, float]:
        if len(y) < 2:
            return {"r2": float("nan")}
        truth = target.astype(np.float64)
        residual = np.square(truth - y).sum(axis=0)
        spread = np.square(truth - truth.mean(axis=0)).sum(axis=0)
        # Rounding of the mean can hide that a target is constant; its extremes cannot.
        constant = truth.min(axis=0) == truth.max(axis=0)
        lost = np.where(constant, np.sign(residual), residual / spread)
        return {"r2": float(1.0 - lost.mean())}


@dataclass(frozen=True)
class MeanSquaredError(_Regression):
    """The mean of ``(y - target)**2`` over all entries, as `torch.nn.MSELoss`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.MeanSquaredError()(np.array([[2.0, 0.0]]), np.array([[0.0, 0.0]]))
    >>> value, pullback()
    (2.0, array([[2., 0.]]))
    """

    name: ClassVar[str] = "mse"

    def _compute(self, y: Array, target: Array) -> tuple[float, Derivative]:
        gap: Array = y - np.asfortranarray(target, dtype=y.dtype)
        return _dot(gap, gap) / y.size, lambda: gap * (2.0 / y.size)


@dataclass(frozen=True)
class Huber(_Regression):
    """Half the squared difference up to `delta`, a straight line beyond; as `torch.nn.HuberLoss`.

    The mean over all entries. Outliers pull no harder than `delta` (Huber, Ann. Math. Statist. 35, 1964).

    Parameters
    ----------
    delta : float above 0

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.Huber(delta=1.0)(np.array([[3.0, 0.0]]), np.array([[0.0, 0.0]]))
    >>> value, pullback()
    (1.25, array([[0.5, 0. ]]))
    """

    name: ClassVar[str] = "huber"
    delta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_float("delta", self.delta, 0.0, open_low=True))

    def _compute(self, y: Array, target: Array) -> tuple[float, Derivative]:
        gap: Array = y - np.asfortranarray(target, dtype=y.dtype)
        # With c = min(|gap|, delta), c (|gap| - c / 2) is gap**2 / 2 up to delta and the line beyond.
        size = np.abs(gap)
        near = np.minimum(size, y.dtype.type(self.delta))
        return _dot(near, size - near / 2) / y.size, lambda: np.clip(gap, -self.delta, self.delta) / y.size


def _dot(a: Array, b: Array) -> float:
    """Return the sum of ``a * b`` in float64, without a float64 copy of either."""
    return float(np.einsum("ij,ij->", a, b, dtype=np.float64))
