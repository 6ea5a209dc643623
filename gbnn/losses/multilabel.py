"""Softmax cross entropy of several labels a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gbnn.errors import check_bool
from gbnn.layers.scores import Scores
from gbnn.losses.binary import MultiLabel, precision_at_1
from gbnn.losses.by_row import find, first_best, labelled, softmax, standing_for
from gbnn.losses.loss import Derivative
from gbnn.rows import SparseRows

__all__ = ["MultiLabelCrossEntropy"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MultiLabelCrossEntropy(MultiLabel):
    """Negative log of the softmax at the labels of a sample, a mean over them, and over samples.

    Labels compete for the first places, which is what P@k asks about; where they are many this often ranks
    better than `BinaryCrossEntropy`. Each of n labels of a sample weighs 1/n (Jernite, Choromanska and
    Sontag, ICML 2017; Mahajan et al., "Exploring the limits of weakly supervised pretraining", ECCV 2018).

    Parameters
    ----------
    normalized : bool
        Whether the labels of a sample share a weight of 1, or each has it. Menon, Rawat, Reddi and Kumar,
        "Multilabel reductions: what is my loss optimising?", NeurIPS 2019, show that the one suits recall
        at k and the other precision at k.

    Notes
    -----
    Targets in [0, 1], dense or SciPy CSR; one between is a label of less weight. Samples without labels do
    not count. Of sparse outputs the softmax is over those that are there; a label that is not among them has
    no gradient, and counts log(outputs), the loss of a guess. `predict` gives the best label of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> loss = losses.MultiLabelCrossEntropy()
    >>> value, pullback = loss(np.zeros((1, 4)), np.array([[1, 1, 0, 0]]))
    >>> round(value, 4), pullback()
    (1.3863, array([[-0.25, -0.25,  0.25,  0.25]]))
    """

    name: ClassVar[str] = "multilabel_cross_entropy"
    normalized: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalized", check_bool("normalized", self.normalized))

    def _shares(self, target: Any, batch: int) -> tuple[Array, Array, Array, Array]:
        """Return row, column and weight of each label, and the sum of these over each row."""
        rows, columns, sizes = labelled(target)
        of_row = np.bincount(rows, sizes, batch)
        if self.normalized:
            sizes = sizes / of_row[rows]
        sizes = sizes / max(np.count_nonzero(of_row), 1)
        return rows, columns, sizes, np.bincount(rows, sizes, batch)

    def _compute(self, y: Array, target: Any) -> tuple[float, Derivative]:
        rows, columns, share, mass = self._shares(target, len(y))
        peak = y.max(axis=1)
        shifted = y - peak[:, None]
        value = -float((share * shifted[rows, columns]).sum())
        exps = np.exp(shifted, out=shifted)
        total = exps.sum(axis=1, dtype=np.float64)
        value += float((mass * np.log(total)).sum())

        def derivative() -> Array:
            dy: Array = exps * (mass / total).astype(y.dtype)[:, None]
            dy[rows, columns] -= share.astype(y.dtype)
            return dy

        return value, derivative

    def _compute_rows(
        self, y: SparseRows, target: Any, chance: Array | None = None
    ) -> tuple[float, Derivative]:
        rows, columns, share, _ = self._shares(target, len(y))
        at = find(y, rows, columns)
        here = at >= 0
        missed = float(share[~here].sum())
        at, share = at[here], share[here]
        mass = np.bincount(rows[here], share, len(y))
        _, shifted, exps, total = softmax(y, standing_for(y, chance))
        value = float((mass * np.log(total)).sum()) - float((share * shifted[at]).sum())
        value += missed * float(np.log(y.shape[1]))

        def derivative() -> Array:
            dy: Array = exps * (mass / total).astype(y.dtype)[y.rows]
            dy[at] -= share.astype(y.dtype)
            return dy

        return value, derivative

    def _predict(self, y: Array) -> Array:
        return np.asarray(y.argmax(axis=1), dtype=np.int64)

    def _predict_rows(self, y: SparseRows) -> Array:
        return first_best(y)

    def _predict_scores(self, y: Scores) -> Array:
        return y.top(1)[0][:, 0]

    def _metrics(self, y: Array, target: Any) -> dict[str, float]:
        return precision_at_1(y.argmax(axis=1), target)

    def _probabilities(self, y: Array) -> Array:
        exps: Array = np.exp(y - y.max(axis=1)[:, None])
        exps /= exps.sum(axis=1, dtype=np.float64).astype(y.dtype)[:, None]
        return exps

    def _probabilities_rows(self, y: SparseRows) -> Array:
        _, _, exps, total = softmax(y, np.ones(1))
        exps /= total.astype(y.dtype)[y.rows]
        return exps
