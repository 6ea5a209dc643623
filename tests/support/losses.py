"""The table of losses, with what makes targets for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gbnn import losses

Array = np.ndarray[Any, Any]
WEIGHTS = (0.5, 2.0, 0.0, 1.25)
CLASSES = len(WEIGHTS)


def labels(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.permutation(np.arange(shape[0]) % shape[1])


def shares(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.random(shape)


def indicators(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.random(shape) < 0.4


def sparse(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return sp.csr_array(rng.random(shape) * (rng.random(shape) < 0.4))


def numbers(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.standard_normal(shape)


# Every loss, with a maker of targets for outputs of a shape. tests/losses goes through this table.
TABLE: dict[str, tuple[losses.Loss, Callable[..., Any]]] = {
    "cross_entropy": (losses.cross_entropy, labels),
    "smoothed": (losses.CrossEntropy(label_smoothing=0.1), labels),
    "weighted": (losses.CrossEntropy(class_weights=np.array(WEIGHTS)), labels),
    "weighted and smoothed": (losses.CrossEntropy(WEIGHTS, 0.3), labels),
    "hinge": (losses.hinge, labels),
    "hinge of margin 0.3": (losses.Hinge(margin=0.3), labels),
    "binary, bool": (losses.binary_cross_entropy, indicators),
    "binary, shares": (losses.binary_cross_entropy, shares),
    "binary, sparse": (losses.binary_cross_entropy, sparse),
    "binary, a mean over rows": (losses.BinaryCrossEntropy(reduction="rows"), sparse),
    "multi-label, bool": (losses.multilabel_cross_entropy, indicators),
    "multi-label, sparse": (losses.multilabel_cross_entropy, sparse),
    "multi-label, each label 1": (losses.MultiLabelCrossEntropy(normalized=False), indicators),
    "mse": (losses.mse, numbers),
    "huber": (losses.huber, numbers),
    "huber of delta 0.4": (losses.Huber(delta=0.4), numbers),
}
DEFAULTS = {
    "cross_entropy": losses.cross_entropy,
    "binary_cross_entropy": losses.binary_cross_entropy,
    "multilabel_cross_entropy": losses.multilabel_cross_entropy,
    "mse": losses.mse,
    "huber": losses.huber,
    "hinge": losses.hinge,
}
all_losses = pytest.mark.parametrize(("loss", "make"), TABLE.values(), ids=TABLE)


def case(make: Callable[..., Any], shape: tuple[int, int] = (7, CLASSES), dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(3)
    y = np.asfortranarray(2 * rng.standard_normal(shape), dtype=dtype)
    return y, make(shape, rng)


def allowed(loss: losses.Loss, shape: tuple[int, int]) -> bool:
    return loss.config().get("class_weights") is None or shape[1] == CLASSES
