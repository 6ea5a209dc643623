"""`Loss`: what every loss is and can say of a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from gbnn.errors import ArgumentError, KindError
from gbnn.layers.scores import Scores
from gbnn.losses.checks import outputs_of
from gbnn.rows import SparseRows

__all__ = ["Derivative", "Loss", "Pullback"]

Array = np.ndarray[Any, Any]
Derivative = Callable[[], Array]
Pullback = Callable[[], Any]


@dataclass(frozen=True)
class Loss(ABC):
    """How far outputs are from their targets, a mean over the batch; call it as ``loss(y, target)``.

    A loss never changes and equals another of the same class and options; `name` and `config` are what a file
    keeps of it. A new one is a class with the methods that are abstract here: they get `y` and the target
    checked, and NumPy's warnings are off, since outputs that overflow give a value that says so. Methods that
    end in `_rows` are those for sparse `y`, and what they give per entry has shape (y.nnz,).

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
    def _compute(self, y: Array, target: Any) -> tuple[float, Derivative]: ...
    @abstractmethod
    def _predict(self, y: Array) -> Array: ...
    @abstractmethod
    def _metrics(self, y: Array, target: Any) -> dict[str, float]: ...

    def _probabilities(self, y: Array) -> Array:
        raise ArgumentError("loss", "a loss that has probabilities", f"{self.name}, which has none")

    # Of a sample of the outputs (`Sampled`), `chance` is how likely each entry was to be in it.
    def _compute_rows(
        self, y: SparseRows, target: Any, chance: Array | None = None
    ) -> tuple[float, Derivative]:
        raise KindError("y", f"an array: {self.name} takes no sparse outputs", "sparse rows")

    def _predict_rows(self, y: SparseRows) -> Any:
        raise KindError("y", f"an array: {self.name} takes no sparse outputs", "sparse rows")

    def _metrics_rows(self, y: SparseRows, target: Any) -> dict[str, float]:
        raise KindError("y", f"an array: {self.name} takes no sparse outputs", "sparse rows")

    def _probabilities_rows(self, y: SparseRows) -> Array:
        return self._probabilities(y.values)

    # Of lazy outputs; losses that rank labels ask for the best alone.
    def _predict_scores(self, y: Scores) -> Any:
        return self._predict(y.dense())

    def _metrics_scores(self, y: Scores, target: Any) -> dict[str, float]:
        return self._metrics(y.dense(), target)

    def __call__(self, y: Any, target: Any) -> tuple[float, Pullback]:
        """Compute the loss of a batch.

        Parameters
        ----------
        y : ndarray, SparseRows (or anything sparse) or Scores, shape (batch, outputs), float32 or float64
            What the model gave; Fortran order saves a copy. Outputs absent from sparse y are out of the
            game: each loss says what becomes of a label there. All scores of `Scores` are computed.
        target : array_like
            What it should have given: see `check_target`, which raises if it is wrong.

        Returns
        -------
        value : float
            The mean loss, summed in float64; NaN or infinite if `y` makes it so.
        pullback : callable
            ``pullback()`` is d value / d y: shape and dtype of `y`, Fortran order, a new array each time; of
            sparse y SparseRows of its pattern.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from gbnn import losses
        >>> y = sp.csr_array(([0.0, 0.0, 1.0], [1, 5, 2], [0, 2, 3]), shape=(2, 2**40))
        >>> value, pullback = losses.cross_entropy(y, [5, 2])
        >>> round(value, 4), pullback().values
        (0.3466, array([ 0.25, -0.25,  0.  ]))
        """
        y = outputs_of(y)
        checked = self._check(target, *y.shape)
        with np.errstate(all="ignore"):
            if isinstance(y, Scores):
                y = y.dense()
            rows = y if isinstance(y, SparseRows) else None
            computed = self._compute(y, checked) if rows is None else self._compute_rows(rows, checked)
        value, derivative = computed

        def pullback() -> Any:
            with np.errstate(all="ignore"):
                return derivative() if rows is None else rows.with_values(derivative())

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

    def predict(self, y: Any) -> Any:
        """Return what the outputs say: int64 labels (batch,), bool (batch, labels), or `y` in regression.

        Of sparse y, a row without entries has the label -1, and labels (batch, labels) come as SciPy CSR.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.cross_entropy.predict([[0.5, 2.0], [1.0, -1.0]])
        array([1, 0])
        """
        y = outputs_of(y)
        if isinstance(y, Scores):
            return self._predict_scores(y)
        return self._predict_rows(y) if isinstance(y, SparseRows) else self._predict(y)

    def probabilities(self, y: Any) -> Any:
        """Return the probability of each output, shape and dtype of `y`: its softmax or sigmoid.

        Of sparse y: SparseRows of its pattern, a softmax over what is there.

        Raises ArgumentError if there is none (`MeanSquaredError`, `Huber`, `Hinge`).

        Examples
        --------
        >>> import numpy as np
        >>> from gbnn import losses
        >>> losses.cross_entropy.probabilities(np.zeros((1, 2)))
        array([[0.5, 0.5]])
        """
        y = outputs_of(y)
        with np.errstate(all="ignore"):
            if isinstance(y, SparseRows):
                return y.with_values(self._probabilities_rows(y))
            return self._probabilities(y.dense() if isinstance(y, Scores) else y)

    def metrics(self, y: Any, target: Any) -> dict[str, float]:
        """Return how good the outputs are, by name; raises as a call does.

        ``accuracy`` is the share of labels `predict` has right (multi-label: of all entries). ``r2``, the
        coefficient of determination, is a mean over outputs, as in scikit-learn: a constant target scores 1
        if met exactly and else 0, and fewer than two rows give NaN. ``precision_at_1``, of multi-label
        outputs that are ranked, sparse or lazy: how often the first is right.
        ``reached``, of sparse y: the share of true labels that are among the outputs.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.cross_entropy.metrics([[0.5, 2.0], [1.0, -1.0]], [1, 1])
        {'accuracy': 0.5}
        """
        y = outputs_of(y)
        checked = self._check(target, *y.shape)
        with np.errstate(all="ignore"):
            if isinstance(y, Scores):
                return self._metrics_scores(y, checked)
            return self._metrics_rows(y, checked) if isinstance(y, SparseRows) else self._metrics(y, checked)

    def config(self) -> dict[str, Any]:
        """Return the options, JSON values: ``type(losses.named(loss.name))(**loss.config()) == loss``.

        Examples
        --------
        >>> from gbnn import losses
        >>> losses.Huber(delta=0.5).config()
        {'delta': 0.5}
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}
