"""`Loss`: what every loss is and can say of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.losses.checks import outputs_of

__all__ = ["Loss", "Pullback"]

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
        y = outputs_of(y)
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
        return self._predict(outputs_of(y))

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
            return self._probabilities(outputs_of(y))

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
        y = outputs_of(y)
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
