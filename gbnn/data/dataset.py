"""The record of a data set: samples and targets in two parts, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gbnn.data.checks import is_sparse
from gbnn.errors import ArgumentError

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and targets, in a training and a test part.

    Attributes
    ----------
    name : str
    x_train, x_test : ndarray or SciPy CSR, shape (rows, features)
    y_train, y_test : ndarray or SciPy CSR, shape (rows,) or (rows, outputs)
        Class numbers (int64), zeros and ones of several labels, or numbers.
    classes : tuple of str
        Names of the classes or labels in the order of their numbers; may be empty.
    image_shape : (int, int) or None
        Height and width, if a sample is an image.
    loss : str
        The loss that suits: "cross_entropy", "binary_cross_entropy" or "mse".
    zero_based : bool or None
        Of svmlight files: whether their indices count from 0; other files of the set are to be read so, too.

    Raises
    ------
    ArgumentError
        If the parts do not fit each other: rows, features, outputs, or labels beyond `classes`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.data import Dataset
    >>> x, y = np.eye(3, dtype=np.float32), np.array([0, 1, 1])
    >>> dataset = Dataset("toy", x, y, x, y, classes=("no", "yes"))
    >>> dataset
    Dataset(toy: 3 training and 3 test rows, 3 features, 2 classes (no, yes))
    >>> dataset.features, dataset.outputs
    (3, 2)
    """

    name: str
    x_train: Any
    y_train: Any
    x_test: Any
    y_test: Any
    classes: tuple[str, ...] = ()
    image_shape: tuple[int, int] | None = None
    loss: str = "cross_entropy"
    zero_based: bool | None = None

    def __post_init__(self) -> None:
        for part, x, y in (("train", *self.train), ("test", *self.test)):
            if x.ndim != 2 or 0 in x.shape:
                wanted = "shape (rows, features), at least one of each"
                raise ArgumentError(f"x_{part}", wanted, f"shape {x.shape}")
            if y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
                wanted = f"{x.shape[0]} rows, as x_{part} has"
                raise ArgumentError(f"y_{part}", wanted, f"shape {y.shape}")
        if self.x_test.shape[1] != self.x_train.shape[1]:
            wanted = f"{self.x_train.shape[1]} features, as x_train has"
            raise ArgumentError("x_test", wanted, self.x_test.shape[1])
        if self.y_test.shape[1:] != self.y_train.shape[1:]:
            wanted = f"shape (rows, *{self.y_train.shape[1:]}), as y_train has"
            raise ArgumentError("y_test", wanted, f"shape {self.y_test.shape}")
        if self.classes and self.outputs != len(self.classes):
            raise ArgumentError("classes", f"{self.outputs} names", f"{len(self.classes)}")

    @property
    def train(self) -> tuple[Any, Any]:
        """x_train, y_train."""
        return self.x_train, self.y_train

    @property
    def test(self) -> tuple[Any, Any]:
        """x_test, y_test."""
        return self.x_test, self.y_test

    @property
    def features(self) -> int:
        """Number of inputs that a network for this data has."""
        return int(self.x_train.shape[1])

    @property
    def outputs(self) -> int:
        """Number of outputs that a network for this data has."""
        if self.loss != "cross_entropy":
            return int(self.y_train.shape[1]) if self.y_train.ndim == 2 else 1
        top = max(int(self.y_train.max()), int(self.y_test.max()))
        return max(len(self.classes), top + 1)

    def describe(self) -> str:
        """Return one line: rows, features, and what the targets are."""
        rows = f"{self.x_train.shape[0]:,} training and {self.x_test.shape[0]:,} test rows"
        features = f"{self.features:,} features"
        if self.image_shape is not None:
            features += f" ({self.image_shape[0]} x {self.image_shape[1]} pixels)"
        if is_sparse(self.x_train):
            share = self.x_train.nnz / (self.x_train.shape[0] * self.features)
            features += f" ({share:.3g} of entries not zero)"
        kind = {"cross_entropy": "classes", "binary_cross_entropy": "labels"}.get(
            self.loss, "numbers to predict"
        )
        names = ", ".join(self.classes[:3]) + (", ..." if len(self.classes) > 3 else "")
        return f"{self.name}: {rows}, {features}, {self.outputs:,} {kind}" + (f" ({names})" if names else "")

    def __repr__(self) -> str:
        return f"Dataset({self.describe()})"
