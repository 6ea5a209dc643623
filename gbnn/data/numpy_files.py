"""Samples and targets from NumPy's and SciPy's files: npz, npy, and pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.archive import Archive, read_npy
from gbnn.data.checks import check_csr, check_values, is_sparse
from gbnn.data.table import column_number
from gbnn.data.targets import Target, from_array
from gbnn.errors import ArgumentError, FileError, NonFiniteError

__all__ = ["Records", "from_npy", "from_npz", "from_pair", "make_records", "target_array"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Records:
    """What a file holds.

    Attributes
    ----------
    x : ndarray or csr_array, shape (rows, features)
        Samples, in the dtype of the file (float32 from text).
    y : ndarray, csr_array or None
        Targets as `gbnn.data.targets.Target` describes them; None if the file has none.
    classes : tuple of str
        Names of classes or labels, if they have any.
    loss : str
        The loss that suits: "cross_entropy", "binary_cross_entropy", "mse"; empty without targets.
    x_test, y_test : as x and y, or None
        The test part, if the file has one.
    image_shape : (int, int) or None
        Height and width, if the samples are images.
    zero_based : bool or None
        Whether the indices in a svmlight file count from 0.
    """

    x: Any
    y: Any = None
    classes: tuple[str, ...] = ()
    loss: str = ""
    x_test: Any = None
    y_test: Any = None
    image_shape: tuple[int, int] | None = None
    zero_based: bool | None = None


def make_records(x: Any, target: Target | None, **more: Any) -> Records:
    """Return `Records` of samples and what `gbnn.data.targets` told of their target."""
    return Records(x, **more) if target is None else Records(x, *target, **more)


def from_npz(path: Path, target: Any, classes: Sequence[str] | None) -> Records:
    """Read an ``.npz`` file; parameters, layout and errors are those of `gbnn.data.read`."""
    archive = Archive(path)
    names = set(archive.names)
    x_name = next((name for name in ("x", "X", "x_train", "X_train", "") if name in names), None)
    if x_name is None:
        raise FileError(str(path), "an array or CSR matrix named x or X", f"{sorted(names)}")
    others = sorted(names - {x_name})
    if target is not None and target is not False and target not in others:
        raise ArgumentError("target", f"one of the arrays {others} of {path}", repr(target))
    x = archive.get(x_name)
    image_shape = (int(x.shape[1]), int(x.shape[2])) if x.ndim == 3 else None
    x = _matrix(archive.where(x_name), x)
    found = [n for n in ("y", "Y", "y_train", "Y_train") if n in names] if target is None else [target]
    if target is False or not found:
        return Records(x, image_shape=image_shape)
    if len(found) > 1:
        raise FileError(str(path), "one target (choose with target=)", f"{found}")
    y = target_array(archive.where(found[0]), archive.get(found[0]), x.shape[0])
    test = [name for name in ("x_test", "X_test", "y_test", "Y_test") if name in names]
    if not test:
        name = archive.where(found[0])
        return make_records(x, from_array(lambda i: f"{name}, row {i}", y, classes), image_shape=image_shape)
    if [name.lower() for name in test] != ["x_test", "y_test"]:
        raise FileError(str(path), "one x_test and one y_test", f"{test}")
    x_test = _matrix(archive.where(test[0]), archive.get(test[0]))
    if x_test.shape[1] != x.shape[1]:
        raise FileError(archive.where(test[0]), f"{x.shape[1]} features as in {x_name}", x_test.shape[1])
    y_test = target_array(archive.where(test[1]), archive.get(test[1]), x_test.shape[0])
    rows = x.shape[0]

    def place(i: int) -> str:
        return f"{archive.where(found[0] if i < rows else test[1])}, row {i if i < rows else i - rows}"

    # Told in one, so that a class has the same number in both parts.
    both = from_array(place, _stack(archive.where(test[1]), y, y_test), classes)
    first = both._replace(y=both.y[:rows])
    return make_records(x, first, x_test=x_test, y_test=both.y[rows:], image_shape=image_shape)


def _stack(where: str, y: Any, y_test: Any) -> Any:
    alike = is_sparse(y) == is_sparse(y_test) and (y.dtype.kind == "U") == (y_test.dtype.kind == "U")
    if not alike or y.shape[1:] != y_test.shape[1:]:
        wanted = f"a target like that for training ({y.dtype} of shape {y.shape})"
        raise FileError(where, wanted, f"{y_test.dtype} of shape {y_test.shape}")
    return sp.vstack([y, y_test], format="csr") if is_sparse(y) else np.concatenate([y, y_test])


def from_npy(path: Path, target: Any, classes: Sequence[str] | None) -> Records:
    """Read a ``.npy`` file; parameters and errors are those of `gbnn.data.read`."""
    array = read_npy(path)
    x = _matrix(str(path), array)
    if target is None or target is False:
        image_shape = (int(array.shape[1]), int(array.shape[2])) if array.ndim == 3 else None
        return Records(x, image_shape=image_shape)
    column = column_number(target)
    if column is None or not -x.shape[1] <= column < x.shape[1] or x.shape[1] == 1:
        wanted = f"a column of {path}, 0 to {x.shape[1] - 1}, that leaves features"
        raise ArgumentError("target", wanted, repr(target))
    column %= x.shape[1]
    found = from_array(lambda row: f"{path}, row {row}", x[:, column], classes)
    return make_records(np.delete(x, column, axis=1), found)


def from_pair(
    x_path: str, y_path: str, target: Any, classes: Sequence[str] | None, features: int | None
) -> Records:
    """Read samples from one file and targets from another; errors are those of `gbnn.data.read`."""
    if target is not None and target is not False:
        raise ArgumentError("target", "none: the second file is the target", repr(target))
    x = _matrix(x_path, _only_matrix(x_path))
    if features is not None and x.shape[1] != features:
        raise FileError(x_path, f"{features} features", x.shape[1])
    if target is False:
        return Records(x)
    y = target_array(y_path, _only_matrix(y_path), x.shape[0])
    return make_records(x, from_array(lambda row: f"{y_path}, row {row}", y, classes))


def _only_matrix(path: str) -> Any:
    if not Path(path).is_file():
        raise FileError(path, "a file", "nothing of that name")
    if path.lower().endswith(".npy"):
        return read_npy(path)
    archive = Archive(path)
    if len(archive.names) != 1:
        raise FileError(path, "one matrix, as scipy.sparse.save_npz writes it", f"{list(archive.names)}")
    return archive.get(archive.names[0])


def _matrix(where: str, x: Any) -> Any:
    """Return samples as a matrix of finite numbers, or raise FileError."""
    if x.dtype.kind not in "fiub":
        raise FileError(where, "real numbers", x.dtype)
    if x.ndim < 2 or 0 in x.shape:
        raise FileError(where, "shape (rows, features), at least one of each", f"shape {x.shape}")
    _check_finite(where, x)
    return x.reshape(x.shape[0], -1) if x.ndim > 2 else x


def target_array(where: str, y: Any, rows: int) -> Any:
    """Return a target as numbers or strings, a row for each sample, or raise FileError."""
    if y.ndim not in (1, 2) or 0 in y.shape or y.shape[0] != rows:
        raise FileError(
            where, f"shape ({rows},) or ({rows}, outputs), a row for each of x", f"shape {y.shape}"
        )
    if y.dtype.kind == "S" and y.ndim == 1:
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError as error:
            raise FileError(where, "UTF-8 text", error) from None
    if y.dtype.kind not in "fiub" and not (y.dtype.kind == "U" and y.ndim == 1):
        raise FileError(where, "numbers, or names of classes", y.dtype)
    if y.dtype.kind == "f" or is_sparse(y):
        _check_finite(where, y)
    return y


def _check_finite(where: str, values: Any) -> None:
    try:
        (check_csr if is_sparse(values) else check_values)(where, values, np.dtype(np.float64))
    except (ArgumentError, NonFiniteError) as error:
        raise FileError(error.where, error.expected, error.got) from None
