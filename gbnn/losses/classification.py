"""Losses of one class label a sample: cross entropy and hinge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gbnn.errors import ArgumentError, check_finite, check_float
from gbnn.layers.scores import Scores
from gbnn.losses.by_row import find, first_best, softmax, standing_for, sums
from gbnn.losses.checks import array_of, first_of
from gbnn.losses.loss import Derivative, Loss
from gbnn.rows import SparseRows

__all__ = ["CrossEntropy", "Hinge"]

Array = np.ndarray[Any, Any]


class _Classification(Loss):
    """Losses of one class label a sample."""

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Array:
        labels = array_of("target", target, "iu", "integer class labels")
        if labels.ndim != 1 or labels.size == 0 or (rows is not None and labels.size != rows):
            wanted = "rows" if rows is None else rows
            raise ArgumentError("target", f"class labels of shape ({wanted},)", f"shape {labels.shape}")
        top = np.iinfo(np.int64).max if outputs is None else outputs - 1
        # Python integers compare rightly with any dtype, unsigned ones included.
        if int(labels.min()) < 0 or int(labels.max()) > top:
            bad = (labels < 0) | (labels > top)
            raise ArgumentError("target", f"class labels from 0 to {top}", first_of(labels, bad))
        return labels.astype(np.int64, copy=False)

    def _predict(self, y: Array) -> Array:
        return np.asarray(y.argmax(axis=1), dtype=np.int64)

    def _metrics(self, y: Array, target: Array) -> dict[str, float]:
        return {"accuracy": float((y.argmax(axis=1) == target).mean())}

    def _predict_rows(self, y: SparseRows) -> Array:
        return first_best(y)

    def _metrics_rows(self, y: SparseRows, target: Array) -> dict[str, float]:
        accuracy = float((first_best(y) == target).mean())
        return {"accuracy": accuracy, "reached": float((_true(y, target) >= 0).mean())}

    def _predict_scores(self, y: Scores) -> Array:
        return y.top(1)[0][:, 0]

    def _metrics_scores(self, y: Scores, target: Array) -> dict[str, float]:
        return {"accuracy": float((self._predict_scores(y) == target).mean())}


@dataclass(frozen=True)
class CrossEntropy(_Classification):
    """Negative log of the softmax at the true class, with the semantics of `torch.nn.CrossEntropyLoss`.

    Parameters
    ----------
    class_weights : array_like, shape (classes,), optional
        Finite and not negative; kept as a tuple. The mean is weighted: the sum over the batch is divided by
        the weights of its labels (NaN if those are all 0).
    label_smoothing : float in [0, 1)
        Share of the target spread evenly over all classes (Szegedy et al., CVPR 2016, section 7).

    Notes
    -----
    Of sparse outputs the softmax, and the smoothing, are over those that are there, as if the others were
    -∞. A row whose true class is not among them has no gradient, and counts log(outputs), the loss of a
    guess; `metrics` says how many are ``reached``.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.CrossEntropy()(np.zeros((1, 2)), np.array([1]))
    >>> round(value, 4), pullback()
    (0.6931, array([[ 0.5, -0.5]]))
    """

    name: ClassVar[str] = "cross_entropy"
    class_weights: Sequence[float] | Array | None = None
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        smoothing = check_float("label_smoothing", self.label_smoothing, 0.0)
        if smoothing >= 1.0:
            raise ArgumentError("label_smoothing", "a number in [0, 1)", smoothing)
        object.__setattr__(self, "label_smoothing", smoothing)
        if self.class_weights is not None:
            weights = array_of("class_weights", self.class_weights, "biuf", "numbers, one a class")
            if weights.ndim != 1 or weights.size == 0:
                raise ArgumentError("class_weights", "shape (classes,)", f"shape {weights.shape}")
            check_finite("class_weights", weights)
            if weights.min() < 0 or weights.max() == 0:
                raise ArgumentError("class_weights", "no negative number, and not only 0", weights.tolist())
            # A tuple, so that losses can be compared and hashed.
            object.__setattr__(self, "class_weights", tuple(float(w) for w in weights))

    @cached_property
    def _weights(self) -> Array:
        return np.asarray(self.class_weights)

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Array:
        if self.class_weights is not None:
            classes = len(self.class_weights)
            if outputs not in (None, classes):
                raise ArgumentError("class_weights", f"{outputs} weights, one a class", classes)
            outputs = classes
        return super()._check(target, rows, outputs)

    def _compute(self, y: Array, target: Array) -> tuple[float, Derivative]:
        batch, classes = y.shape
        at = np.arange(batch), target
        # The loss of a row is the sum over classes of coefficient * (log sum exp(y) - y); the coefficient is
        # `smooth`, and `true` more at the label. All is float64 but what is as big as y.
        weights = np.ones(classes) if self.class_weights is None else self._weights
        share = weights[target]
        total = share.sum()
        true = (1.0 - self.label_smoothing) * share / total
        smooth = self.label_smoothing / classes * weights / total
        peak, shifted = _shifted(y)
        value = float((true * (peak.astype(np.float64) - y[at])).sum())
        if self.label_smoothing:
            value -= float((smooth * shifted.sum(axis=0, dtype=np.float64)).sum())
        exps = np.exp(shifted, out=shifted)
        sums = exps.sum(axis=1, dtype=np.float64)
        mass = true + smooth.sum()
        value += float((mass * np.log(sums)).sum())

        def pullback() -> Array:
            dy: Array = exps * (mass / sums).astype(y.dtype)[:, None]
            if self.label_smoothing:
                dy -= smooth.astype(y.dtype)
            dy[at] -= true.astype(y.dtype)
            return dy

        return value, pullback

    def _compute_rows(
        self, y: SparseRows, target: Array, chance: Array | None = None
    ) -> tuple[float, Derivative]:
        rows, at = y.rows, _true(y, target)
        here = at >= 0
        each = standing_for(y, chance)
        if self.class_weights is None:
            share, of_class = np.ones(len(y)), np.ones(1)
        else:
            share, of_class = self._weights[target], self._weights[y.columns]
        total = share.sum()
        true = here * (1.0 - self.label_smoothing) * share / total
        smooth = here[rows] * self.label_smoothing * each / sums(y, each)[rows] * of_class / total
        peak, shifted, exps, norm = softmax(y, each)
        mass = true + sums(y, smooth)
        value = float(share[~here].sum() / total * np.log(y.shape[1])) if not here.all() else 0.0
        value += float((true[here] * (peak[here].astype(np.float64) - y.values[at[here]])).sum())
        if self.label_smoothing:
            value -= float((smooth * shifted).sum())
        value += float((mass * np.log(norm)).sum())
        value += 0.0 * float(y.values[~here[rows]].sum(dtype=np.float64))  # NaN where an output is

        def derivative() -> Array:
            dy: Array = exps * (mass / norm).astype(y.dtype)[rows]
            if self.label_smoothing:
                dy -= smooth.astype(y.dtype)
            dy[at[here]] -= true[here].astype(y.dtype)
            return dy

        return value, derivative

    def _probabilities(self, y: Array) -> Array:
        _, shifted = _shifted(y)
        exps = np.exp(shifted, out=shifted)
        exps /= exps.sum(axis=1, dtype=np.float64).astype(y.dtype)[:, None]
        return exps

    def _probabilities_rows(self, y: SparseRows) -> Array:
        _, _, exps, norm = softmax(y, np.ones(1))
        exps /= norm.astype(y.dtype)[y.rows]
        return exps


@dataclass(frozen=True)
class Hinge(_Classification):
    """How far each wrong class comes within `margin` of the true one, as `torch.nn.MultiMarginLoss`.

    The mean over all (batch, classes) of ``max(0, margin - y[true] + y)``, 0 for the true class: every wrong
    class counts (Weston and Watkins, ESANN 1999), not the worst alone (Crammer and Singer, JMLR 2001).

    Parameters
    ----------
    margin : float above 0

    Notes
    -----
    Of sparse outputs those that are not there do not count. A row whose true class is not there has no
    gradient, and each of its outputs counts `margin`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.Hinge()(np.array([[0.0, 0.5]]), np.array([1]))
    >>> value, pullback()
    (0.25, array([[ 0.5, -0.5]]))
    """

    name: ClassVar[str] = "hinge"
    margin: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", check_float("margin", self.margin, 0.0, open_low=True))

    def _compute(self, y: Array, target: Array) -> tuple[float, Derivative]:
        at = np.arange(len(y)), target
        margin = y.dtype.type(self.margin)
        excess: Array = y - y[at][:, None]
        excess += margin
        excess[at] -= margin  # 0, but NaN where the true output is not finite
        np.maximum(excess, 0, out=excess)
        value = float(excess.sum(dtype=np.float64)) / y.size

        def pullback() -> Array:
            dy = (excess > 0).astype(y.dtype)
            dy[at] = -dy.sum(axis=1)
            dy /= y.size
            return dy

        return value, pullback

    def _compute_rows(
        self, y: SparseRows, target: Array, chance: Array | None = None
    ) -> tuple[float, Derivative]:
        rows, at = y.rows, _true(y, target)
        here = at >= 0
        each = standing_for(y, chance).astype(y.dtype)
        margin = y.dtype.type(self.margin)
        true = y.values[at[here]]
        against = np.zeros(len(y), dtype=y.dtype)
        against[here] = true
        excess: Array = (y.values - against[rows]) * here[rows] + margin  # NaN stays NaN
        excess[at[here]] -= margin
        np.maximum(excess, 0, out=excess)
        norm = float(max(each.sum(dtype=np.float64), 1.0))
        value = float((excess * each).sum(dtype=np.float64)) / norm

        def derivative() -> Array:
            dy: Array = ((excess > 0) & here[rows]).astype(y.dtype) * each
            dy[at[here]] = -sums(y, dy)[here]
            dy /= norm
            return dy

        return value, derivative


def _true(y: SparseRows, target: Array) -> Array:
    """Return which entry of `y` is that of each row's true class, or -1."""
    return find(y, np.arange(len(y)), target)


def _shifted(y: Array) -> tuple[Array, Array]:
    """Return the largest output of each row, shape (batch,), and `y` less that: its exp cannot overflow."""
    peak = y.max(axis=1)
    return peak, y - peak[:, None]
