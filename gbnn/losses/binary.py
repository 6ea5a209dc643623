"""Binary cross entropy: any number of yes-or-no labels a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError, KindError
from gbnn.losses.checks import array_of, first_of, matrix_of
from gbnn.losses.loss import Loss, Pullback

__all__ = ["BinaryCrossEntropy"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class BinaryCrossEntropy(Loss):
    """Negative log of the sigmoid of each label, a mean over all entries, as `torch.nn.BCEWithLogitsLoss`.

    Targets are 0, 1 or between, for any number of labels a sample; one in SciPy CSR stays sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.BinaryCrossEntropy()(np.zeros((1, 2)), np.array([[1, 0]]))
    >>> round(value, 4), pullback()
    (0.6931, array([[-0.25,  0.25]]))
    """

    name: ClassVar[str] = "binary_cross_entropy"

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Any:
        if sp.issparse(target):
            numbers = _csr(target)
            entries = numbers.data
        else:
            numbers = entries = array_of("target", target, "biuf", "numbers in [0, 1]")
        numbers = matrix_of(numbers, rows, outputs)
        if entries.size and not (entries.min() >= 0 and entries.max() <= 1):  # NaN fails too
            bad = ~((entries >= 0) & (entries <= 1))
            raise ArgumentError("target", "numbers in [0, 1]", first_of(numbers, bad))
        return numbers

    def _compute(self, y: Array, target: Any) -> tuple[float, Pullback]:
        at, ones = _stored(target, y.dtype)
        # log(1 + exp(y)) - t y = (max(y, 0) - t y) + log(1 + exp(-|y|)): no term is below 0, so none cancel.
        terms: Array = np.maximum(y, 0)
        terms[at] -= ones * y[at]
        value = float(terms.sum(dtype=np.float64))
        decay = _decay(y)
        value += float(np.log1p(decay, out=terms).sum(dtype=np.float64))

        def pullback() -> Array:
            dy = _sigmoid(y, decay)
            dy[at] -= ones
            dy /= y.size
            return dy

        return value / y.size, pullback

    def _predict(self, y: Array) -> Array:
        return y > 0

    def _metrics(self, y: Array, target: Any) -> dict[str, float]:
        at, ones = _stored(target, y.dtype)
        truth = np.zeros(y.shape, dtype=bool, order="F")
        truth[at] = ones > 0.5
        return {"accuracy": float(((y > 0) == truth).mean())}

    def _probabilities(self, y: Array) -> Array:
        return _sigmoid(y, _decay(y))


def _csr(target: Any) -> Any:
    if target.format != "csr" or target.dtype.kind not in "biuf":
        got = f"{type(target).__name__} of dtype {target.dtype}"
        raise KindError("target", "an array, or SciPy CSR (see .tocsr()), of numbers", got)
    try:
        target.check_format(full_check=True)
    except ValueError as error:
        raise ArgumentError("target", "a well-formed CSR matrix", error) from None
    if not target.has_canonical_format:
        target = target.copy()  # the caller's own stays as it is
        target.sum_duplicates()
    return target


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
