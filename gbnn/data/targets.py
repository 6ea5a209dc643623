"""What a target is: class labels with their names, several labels a row, or numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gbnn.data.checks import is_sparse
from gbnn.errors import FileError

__all__ = ["INTEGER", "Target", "from_array", "from_text", "is_number"]

Array = np.ndarray[Any, Any]
Place = Callable[[int], str]
"""Row of a target -> what to call it in an error: the file, and the line or the array and row."""

INTEGER = re.compile(r"[+-]?[0-9]{1,18}")  # at most 18 digits: fits in int64


class Target(NamedTuple):
    """A target ready for a loss.

    Attributes
    ----------
    y : ndarray or csr_array
        Classes: int64, shape (rows,), positions in `classes`. Several labels a row: 0 and 1, shape
        (rows, labels), float32 or CSR. Numbers: float32, shape (rows,) or (rows, outputs).
    classes : tuple of str
        Names of the classes or labels, if they have any.
    loss : str
        "cross_entropy", "binary_cross_entropy" or "mse", in the order of the above.
    """

    y: Any
    classes: tuple[str, ...]
    loss: str


def from_array(place: Place, values: Any, classes: Sequence[str] | None = None) -> Target:
    """Tell what an array or CSR matrix of real numbers, or an array of strings, is as a target.

    Parameters
    ----------
    place : callable
        Names a row in errors.
    values : ndarray or csr_array
        1-D integers, booleans or strings are classes; 1-D floats are numbers; 2-D zeros and ones are several
        labels a row; other 2-D arrays are numbers.
    classes : sequence of str, optional
        Names of the classes in order, as an earlier file had them; by default they are found here and sorted.
        Empty: there are no classes, and 1-D integers are numbers.

    Raises
    ------
    FileError
        On a label that is not among `classes`, numbers that are not finite, and sparse entries other than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.data.targets import from_array
    >>> from_array("row {}".format, np.array([7, -1, 7]))
    Target(y=array([1, 0, 1]), classes=('-1', '7'), loss='cross_entropy')
    >>> from_array("row {}".format, np.array(["b"]), classes=["a", "b"]).y
    array([1])
    """
    if values.ndim == 2 and classes and values.shape[1] not in (1, len(classes)):
        raise FileError(place(0), f"{len(classes)} labels", f"{values.shape[1]} columns")
    if is_sparse(values):
        if not values.data.all():
            values = values.copy()
            values.eliminate_zeros()
        other = np.flatnonzero(values.data != 1)
        if other.size:
            row = int(np.searchsorted(values.indptr, other[0], side="right")) - 1
            raise FileError(place(row), "a sparse target of zeros and ones", values.data[other[0]])
        return Target(values, tuple(classes or ()), "binary_cross_entropy")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 2:
        if bool(np.isin(values, (0, 1)).all()):
            return Target(values.astype(np.float32), tuple(classes or ()), "binary_cross_entropy")
        return Target(_numbers(place, values), (), "mse")
    if values.dtype.kind == "f" or (classes is not None and not classes and values.dtype.kind in "iub"):
        if classes:
            raise FileError(place(0), f"one of the {len(classes)} classes", values[0])
        return Target(_numbers(place, values), (), "mse")
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    found, y = np.unique(values, return_inverse=True)
    return _classes(place, [str(value) for value in found], classes, y.astype(np.int64))


def from_text(place: Place, fields: list[str], classes: Sequence[str] | None = None) -> Target:
    """Tell what the fields of a text file's target column are: integers, else numbers, else names.

    Raises
    ------
    FileError
        As `from_array` does, and on an empty field.

    Examples
    --------
    >>> from gbnn.data.targets import from_text
    >>> from_text("line {}".format, ["cat", "ant", "cat"])
    Target(y=array([1, 0, 1]), classes=('ant', 'cat'), loss='cross_entropy')
    >>> from_text("line {}".format, ["1.5", "2"]).loss
    'mse'
    """
    if "" in fields:
        raise FileError(place(fields.index("")), "a target", "an empty field")
    known = bool(classes) and set(fields) <= set(classes or ())
    if not known:
        if all(INTEGER.fullmatch(field) for field in fields):
            return from_array(place, np.array([int(field) for field in fields], dtype=np.int64), classes)
        if all(map(is_number, fields)):
            return from_array(place, np.array([float(field) for field in fields]), classes)
    if classes is not None and not classes:
        row = next(i for i, field in enumerate(fields) if not is_number(field))
        raise FileError(place(row), "a number as target", repr(fields[row]))
    # Not by way of an array of strings: one long field would make every row as long.
    names = sorted(set(fields))
    lookup = {name: number for number, name in enumerate(names)}
    y = np.array([lookup[field] for field in fields], dtype=np.int64)
    return _classes(place, names, classes, y)


def _classes(place: Place, names: Sequence[str], classes: Sequence[str] | None, y: Array) -> Target:
    """Return labels as a target: `y` are positions in `names`, and may have to become those in `classes`."""
    if classes is None:
        return Target(y, tuple(names), "cross_entropy")
    positions = np.array(_positions(place, names, classes, y), dtype=np.int64)
    return Target(positions[y], tuple(classes), "cross_entropy")


def _positions(place: Place, names: Sequence[str], classes: Sequence[str], y: Array) -> list[int]:
    lookup = {name: position for position, name in enumerate(classes)}
    for number, name in enumerate(names):
        if name not in lookup:
            row = int(np.argmax(y == number))
            raise FileError(place(row), f"one of the {len(lookup)} classes", repr(name))
    return [lookup[name] for name in names]


def _numbers(place: Place, values: Array) -> Array:
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is reported as such
        numbers: Array = values.astype(np.float32)
    bad = ~np.isfinite(numbers)
    if bad.any():
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise FileError(place(int(at[0])), "a finite float32 as target", values[at])
    return numbers


def is_number(field: str) -> bool:
    """Whether a field of a text file is a number (NaN and infinity too: they are reported as such)."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field  # float reads 1_0 as 10
