"""Targets of a classifier: classes by number, matrices of labels, class weights, the best few of many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from gbnn.errors import ArgumentError, KindError, check_float

__all__ = ["class_weights", "largest", "numbered", "read"]

Array = np.ndarray[Any, Any]


def read(y: Any) -> tuple[bool, Any]:
    """Return whether y is a matrix of labels, and y: one class a row, or the matrix, sparse if it came so."""
    if sp.issparse(y):
        y = y.tocsr()
        if not y.has_canonical_format or not y.data.all():
            y = y.copy()
            y.sum_duplicates()
            y.eliminate_zeros()
    else:
        y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind in "fiub":
        _check_zeros_and_ones(y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        return True, y
    if kind == "multiclass-multioutput" or sp.issparse(y):
        raise ArgumentError("y", "one class a row, or a matrix of zeros and ones", kind)
    return False, column_or_1d(y, warn=True)


def _check_zeros_and_ones(y: Any) -> None:
    """Raise ArgumentError that says what else is in a matrix of labels, and where."""
    values = y.data if sp.issparse(y) else y
    wrong = (values != 0) & (values != 1)
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    if sp.issparse(y):
        row, column = int(np.searchsorted(y.indptr, first, side="right")) - 1, int(y.indices[first])
    else:
        row, column = divmod(first, y.shape[1])
    got = f"{values.flat[first]} at [{row}, {column}]"
    raise ArgumentError("y", "zeros and ones where rows have several labels", got)


def numbered(y: Array, classes: Array) -> Array:
    """Return the number of each class, int64, or raise if one is not among `classes`."""
    numbers = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    wrong = classes[numbers] != y
    if wrong.any():
        raise ArgumentError("y", f"classes {classes}", y[int(np.argmax(wrong))])
    return numbers.astype(np.int64)


def class_weights(given: Any, classes: Array, numbers: Array, weights: Array | None) -> Array:
    """Return the weight of each class, shape (classes,): of a dict, or such that all weigh the same."""
    if isinstance(given, Mapping):
        unknown = set(given) - set(classes.tolist())
        if unknown:
            raise ArgumentError("class_weight", f"classes among {classes}", sorted(unknown, key=str))
        return np.array([check_float("class_weight", given.get(c, 1.0), 0) for c in classes.tolist()])
    if not isinstance(given, str):
        raise KindError("class_weight", "a dict, 'balanced' or None", type(given).__name__)
    if given != "balanced":
        raise ArgumentError("class_weight", "a dict, 'balanced' or None", given)
    mass = np.bincount(numbers, weights, classes.size)
    result: Array = mass.sum() / (classes.size * np.where(mass > 0, mass, 1))
    return result


def largest(scores: Array, k: int) -> tuple[Array, Array]:
    """Return the columns of the k largest scores of each row, and those scores, the largest first."""
    ids = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    ids.sort(axis=1)  # so that of equal scores the first column comes first
    order = np.argsort(-np.take_along_axis(scores, ids, axis=1), axis=1, kind="stable")
    ids = np.take_along_axis(ids, order, axis=1)
    return ids, np.take_along_axis(scores, ids, axis=1)
