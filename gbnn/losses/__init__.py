"""What training makes small: ``loss(y, target) -> (value, pullback)``, and what the outputs then say."""

from __future__ import annotations

from gbnn.errors import ArgumentError
from gbnn.losses import negatives
from gbnn.losses.binary import BinaryCrossEntropy
from gbnn.losses.classification import CrossEntropy, Hinge
from gbnn.losses.loss import Loss, Pullback
from gbnn.losses.multilabel import MultiLabelCrossEntropy
from gbnn.losses.regression import Huber, MeanSquaredError
from gbnn.losses.sampled import Sampled

__all__ = [
    "BinaryCrossEntropy",
    "CrossEntropy",
    "Hinge",
    "Huber",
    "Loss",
    "MeanSquaredError",
    "MultiLabelCrossEntropy",
    "Pullback",
    "Sampled",
    "binary_cross_entropy",
    "cross_entropy",
    "hinge",
    "huber",
    "mse",
    "multilabel_cross_entropy",
    "named",
    "negatives",
]

cross_entropy = CrossEntropy()
binary_cross_entropy = BinaryCrossEntropy()
multilabel_cross_entropy = MultiLabelCrossEntropy()
mse = MeanSquaredError()
huber = Huber()
hinge = Hinge()

_DEFAULTS: tuple[Loss, ...] = (
    cross_entropy,
    binary_cross_entropy,
    multilabel_cross_entropy,
    mse,
    huber,
    hinge,
)


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
