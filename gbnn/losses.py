"""What training makes small: ``loss(y, target) -> (value, pullback)``, and what the outputs then say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError, KindError, check_finite, check_float
from gbnn.layers.layer import as_batch

__all__ = ["BinaryCrossEntropy", "CrossEntropy", "Hinge", "Huber", "Loss", "MeanSquaredError"]
__all__ += ["binary_cross_entropy", "cross_entropy", "hinge", "huber", "mse", "named"]

Array = np.ndarray[Any, Any]
Pullback = Callable[[], Array]


@dataclass(frozen=True)
class Loss(ABC):
    """How far outputs are from their targets, a mean over the batch; call it as ``loss(y, target)``.

    A loss never changes and equals another of the same class and options; `name` and `config` are what a file
    keeps of it. A new one is a class with the methods that are abstract here: they get `y` and the target
    checked, and NumPy's warnings are off, since outputs that overflow give a value that says so.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> value, pullback = losses.mse(np.array([[1.0, 3.0]]), np.array([[1.0, 1.0]]))
    >>> value, pullback()
    (2.0, array([[0., 2.]]))
    """

    name: ClassVar[str]

    @abstractmethod
    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Any: ...
    @abstractmethod
    def _compute(self, y: Array, target: Any) -> tuple[float, Pullback]: ...
    @abstractmethod
    def _predict(self, y: Array) -> Array: ...
    @abstractmethod
    def _metrics(self, y: Array, target: Any) -> dict[str, float]: ...

    def _probabilities(self, y: Array) -> Array:
        raise ArgumentError("loss", "a loss that has probabilities", f"{self.name}, which has none")

    def __call__(self, y: Any, target: Any) -> tuple[float, Pullback]:
        """Compute the loss of a batch.

        Parameters
        ----------
        y : ndarray, shape (batch, outputs), float32 or float64
            What the model gave; Fortran order saves a copy.
        target : array_like
            What it should have given: see `check_target`, which raises if it is wrong.

        Returns
        -------
        value : float
            The mean loss, summed in float64; NaN or infinite if `y` makes it so.
        pullback : callable
            ``pullback()`` is d value / d y: shape and dtype of `y`, Fortran order, a new array each time.
        """
        y = _outputs(y)
        checked = self._check(target, *y.shape)
        with np.errstate(all="ignore"):
            value, derivative = self._compute(y, checked)

        def pullback() -> Array:
            with np.errstate(all="ignore"):
                return derivative()

        return value, pullback

    def check_target(self, target: Any, rows: int | None = None, outputs: int | None = None) -> Any:
        """Check a target, of a batch or of a whole dataset, and return it as an array.

        Parameters
        ----------
        target : array_like
            `CrossEntropy`, `Hinge`: integer labels in [0, outputs), shape (rows,). The others: numbers, shape
            (rows, outputs), or (rows,) for one output. `BinaryCrossEntropy`: in [0, 1], dense or SciPy CSR.
        rows, outputs : int, optional
            Number of samples, and of outputs of the model, where known.

        Returns
        -------
        ndarray or SciPy CSR
            int64 labels, shape (rows,), or numbers, shape (rows, outputs); no copy if it is that already.

        Raises
        ------
        ArgumentError, KindError, NonFiniteError
            What was expected of ``target`` and what came: the first wrong entry and its place.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.cross_entropy.check_target([0, 3, 1], outputs=3)
        Traceback (most recent call last):
        gbnn.errors.ArgumentError: target: expected class labels from 0 to 2, got 3 at [1]
        """
        return self._check(target, rows, outputs)

    def predict(self, y: Any) -> Array:
        """Return what the outputs say: int64 labels (batch,), bool (batch, labels), or `y` in regression.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.cross_entropy.predict([[0.5, 2.0], [1.0, -1.0]])
        array([1, 0])
        """
        return self._predict(_outputs(y))

    def probabilities(self, y: Any) -> Array:
        """Return the probability of each output, shape and dtype of `y`: its softmax or sigmoid.

        Raises ArgumentError if there is none (`MeanSquaredError`, `Huber`, `Hinge`).

        Examples
        --------
        >>> import numpy as np
        >>> from gbnn import losses
        >>> losses.cross_entropy.probabilities(np.zeros((1, 2)))
        array([[0.5, 0.5]])
        """
        with np.errstate(all="ignore"):
            return self._probabilities(_outputs(y))

    def metrics(self, y: Any, target: Any) -> dict[str, float]:
        """Return how good the outputs are, by name; raises as a call does.

        ``accuracy`` is the share of labels `predict` has right (multi-label: of all entries). ``r2``, the
        coefficient of determination, is a mean over outputs, as in scikit-learn: a constant target scores 1
        if met exactly and else 0, and fewer than two rows give NaN.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.cross_entropy.metrics([[0.5, 2.0], [1.0, -1.0]], [1, 1])
        {'accuracy': 0.5}
        """
        y = _outputs(y)
        with np.errstate(all="ignore"):
            return self._metrics(y, self._check(target, *y.shape))

    def config(self) -> dict[str, Any]:
        """Return the options, JSON values: ``type(losses.named(loss.name))(**loss.config()) == loss``.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.Huber(delta=0.5).config()
        {'delta': 0.5}
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _Classification(Loss):
    """Losses of one class label a sample."""

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Array:
        labels = _array("target", target, "iu", "integer class labels")
        if labels.ndim != 1 or labels.size == 0 or (rows is not None and labels.size != rows):
            wanted = "rows" if rows is None else rows
            raise ArgumentError("target", f"class labels of shape ({wanted},)", f"shape {labels.shape}")
        top = np.iinfo(np.int64).max if outputs is None else outputs - 1
        # Python integers compare rightly with any dtype, unsigned ones included.
        if int(labels.min()) < 0 or int(labels.max()) > top:
            bad = (labels < 0) | (labels > top)
            raise ArgumentError("target", f"class labels from 0 to {top}", _first(labels, bad))
        return labels.astype(np.int64, copy=False)

    def _predict(self, y: Array) -> Array:
        return np.asarray(y.argmax(axis=1), dtype=np.int64)

    def _metrics(self, y: Array, target: Array) -> dict[str, float]:
        return {"accuracy": float((y.argmax(axis=1) == target).mean())}


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
            weights = _array("class_weights", self.class_weights, "biuf", "numbers, one a class")
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

    def _compute(self, y: Array, target: Array) -> tuple[float, Pullback]:
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

    def _probabilities(self, y: Array) -> Array:
        _, shifted = _shifted(y)
        exps = np.exp(shifted, out=shifted)
        exps /= exps.sum(axis=1, dtype=np.float64).astype(y.dtype)[:, None]
        return exps


@dataclass(frozen=True)
class Hinge(_Classification):
    """How far each wrong class comes within `margin` of the true one, as `torch.nn.MultiMarginLoss`.

    The mean over all (batch, classes) of ``max(0, margin - y[true] + y)``, 0 for the true class: every wrong
    class counts (Weston and Watkins, ESANN 1999), not the worst alone (Crammer and Singer, JMLR 2001).

    Parameters
    ----------
    margin : float above 0

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

    def _compute(self, y: Array, target: Array) -> tuple[float, Pullback]:
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
            numbers = entries = _array("target", target, "biuf", "numbers in [0, 1]")
        numbers = _matrix(numbers, rows, outputs)
        if entries.size and not (entries.min() >= 0 and entries.max() <= 1):  # NaN fails too
            bad = ~((entries >= 0) & (entries <= 1))
            raise ArgumentError("target", "numbers in [0, 1]", _first(numbers, bad))
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


class _Regression(Loss):
    """Losses of the difference to a number an output."""

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Array:
        numbers: Array = _matrix(_array("target", target, "biuf", "a dense array of numbers"), rows, outputs)
        check_finite("target", numbers)
        return numbers

    def _predict(self, y: Array) -> Array:
        return y

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

    def _compute(self, y: Array, target: Array) -> tuple[float, Pullback]:
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

    def _compute(self, y: Array, target: Array) -> tuple[float, Pullback]:
        gap: Array = y - np.asfortranarray(target, dtype=y.dtype)
        # With c = min(|gap|, delta), c (|gap| - c / 2) is gap**2 / 2 up to delta and the line beyond.
        size = np.abs(gap)
        near = np.minimum(size, y.dtype.type(self.delta))
        return _dot(near, size - near / 2) / y.size, lambda: np.clip(gap, -self.delta, self.delta) / y.size


cross_entropy = CrossEntropy()
binary_cross_entropy = BinaryCrossEntropy()
mse = MeanSquaredError()
huber = Huber()
hinge = Hinge()

_DEFAULTS: tuple[Loss, ...] = (cross_entropy, binary_cross_entropy, mse, huber, hinge)


def named(name: str) -> Loss:
    """Return the loss of that name with default options; ArgumentError, with the names, if there is none.

    Examples
    --------
    >>> from gbnn import losses
    >>> losses.named("huber")
    Huber(delta=1.0)
    """
    for loss in _DEFAULTS:
        if loss.name == name:
            return loss
    raise ArgumentError("loss", "one of " + ", ".join(loss.name for loss in _DEFAULTS), repr(name))


# -- Reading outputs and targets ---------------------------------------------------------------------------


def _outputs(y: Any) -> Array:
    batch = as_batch("y", y)
    if batch.shape[1] == 0:
        raise ArgumentError("y", "at least one output", f"shape {batch.shape}")
    return batch


def _array(where: str, values: Any, kinds: str, wanted: str) -> Array:
    if sp.issparse(values):
        raise KindError(where, wanted, f"a sparse {type(values).__name__}")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise KindError(where, wanted, type(values).__name__) from None
    if array.dtype.kind not in kinds:
        raise KindError(where, wanted, f"{type(values).__name__} of dtype {array.dtype}")
    return array


def _matrix(array: Any, rows: int | None, outputs: int | None) -> Any:
    """Check the shape (rows, outputs) of an array or sparse matrix; a dense (rows,) stands for (rows, 1)."""
    flat = array.ndim == 1 and not sp.issparse(array)
    shape = (*array.shape, 1) if flat else array.shape
    if len(shape) != 2 or 0 in shape or rows not in (None, shape[0]) or outputs not in (None, shape[1]):
        wanted = f"({'rows' if rows is None else rows}, {'outputs' if outputs is None else outputs})"
        raise ArgumentError("target", f"shape {wanted}", f"shape {array.shape}")
    return array.reshape(shape) if flat else array


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


def _first(array: Any, bad: Array) -> str:
    """Describe the first entry that is `bad`: of an array, or of what a CSR matrix has stored."""
    k = int(np.argmax(bad))
    if sp.issparse(array):
        coo = array.tocoo()
        return f"{coo.data[k]} at [{coo.row[k]}, {coo.col[k]}]"
    place = np.unravel_index(k, bad.shape)
    return f"{array[place]} at [{', '.join(str(int(i)) for i in place)}]"


# -- Arithmetic --------------------------------------------------------------------------------------------


def _dot(a: Array, b: Array) -> float:
    """Return the sum of ``a * b`` in float64, without a float64 copy of either."""
    return float(np.einsum("ij,ij->", a, b, dtype=np.float64))


def _shifted(y: Array) -> tuple[Array, Array]:
    """Return the largest output of each row, shape (batch,), and `y` less that: its exp cannot overflow."""
    peak = y.max(axis=1)
    return peak, y - peak[:, None]


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
