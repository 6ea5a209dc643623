"""Samples and targets from files: npz, npy, csv, tsv, svmlight, and pairs of matrices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gbnn.data.numpy_files import Records, from_npy, from_npz, from_pair, make_records
from gbnn.data.svmlight import read_svmlight
from gbnn.data.table import read_csv
from gbnn.errors import ArgumentError, FileError, KindError

__all__ = ["Records", "read", "read_records"]

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
SUFFIXES = (".npz", ".npy", ".csv", ".tsv", *SVMLIGHT)


def read(
    path: str | Path,
    *,
    target: str | int | bool | None = None,
    classes: Sequence[str] | None = None,
    features: int | None = None,
) -> tuple[Any, Any]:
    r"""Read samples and targets from a file.

    Parameters
    ----------
    path : str or Path
        Told apart by their ending:

        - ``.npz``: arrays ``x`` and ``y`` (or ``X`` and ``Y``; ``x_train`` and ``y_train``), dense, or CSR as
          ``x_data, x_indices, x_indptr, x_shape``; other arrays are ignored. Or one CSR matrix written by
          `scipy.sparse.save_npz`: samples without targets.
        - ``.npy``: samples without targets, unless `target` is a column.
        - ``.csv``, ``.tsv``: numbers with or without a header; see `target`.
        - ``.svm``, ``.svmlight``, ``.libsvm``: ``label index:value ...``, indices from 1 unless there is a 0.
        - a pair ``"X.npz,Y.npz"`` (as a string): a matrix each.
    target : str, int or False, optional
        Text: name or number of the target column (default the last, or none if the file has just `features`
        columns). ``.npz``: name of the target array. ``.npy``: number of the target column. False: leave out
        targets, and in text take every column for a feature.
    classes : sequence of str, optional
        Names of the classes in the order of their numbers, as the training data had them; by default they are
        found in the file and sorted. Empty: integers are numbers, not classes.
    features : int, optional
        How many features there must be.

    Returns
    -------
    x : ndarray or csr_array, shape (rows, features)
    y : ndarray, csr_array or None
        Text and integers become class numbers 0 to k - 1 (int64), floats stay numbers (float32), 2-D zeros
        and ones are several labels a row (float32 or CSR).

    Raises
    ------
    FileError
        If the file cannot be read or is malformed, naming line or array. Nothing is ever unpickled.
    ArgumentError
        If the file has no such `target`.

    See Also
    --------
    read_records : also returns names of classes and a test part.
    gbnn.data.load : a whole data set, split into training and test.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "flowers.csv")
    ...     _ = path.write_text("length,width,kind\n5.1,3.5,iris\n4.9,3,rose\n")
    ...     x, y = read(path)
    >>> x.shape, x.dtype, y
    ((2, 2), dtype('float32'), array([0, 1]))
    """
    records = read_records(path, target=target, classes=classes, features=features)
    return records.x, records.y


def read_records(
    path: str | Path,
    *,
    target: str | int | bool | None = None,
    classes: Sequence[str] | None = None,
    features: int | None = None,
) -> Records:
    """Read all that a file holds: as `read`, with names of classes and a test part.

    An ``.npz`` file may have ``x_test`` and ``y_test`` too, and samples of more dimensions, which are
    flattened to one row each.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from gbnn.data import read_records
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "a.npz"), x=np.eye(3), y=["no", "yes", "no"])
    ...     records = read_records(Path(folder, "a.npz"))
    >>> records.classes, records.y, records.loss
    (('no', 'yes'), array([0, 1, 0]), 'cross_entropy')
    """
    if target is True or not isinstance(target, (str, int, np.integer, type(None))):
        raise ArgumentError("target", "a name, a column number, False or None", repr(target))
    if not isinstance(path, (str, Path)):
        raise KindError("path", "a string or Path", type(path).__name__)
    pair = str(path).split(",")
    if len(pair) == 2 and not os.path.exists(path):
        return from_pair(pair[0].strip(), pair[1].strip(), target, classes, features)
    # os.path answers False where a Path raises: for names too long or with a NUL inside.
    if not os.path.isfile(path):
        other = "a folder" if os.path.isdir(path) else "a pipe or device"
        raise FileError(str(path), "a file", other if os.path.exists(path) else "nothing of that name")
    whole = Path(path)
    suffix = whole.suffix.lower()
    if suffix == ".npz":
        records = from_npz(whole, target, classes)
    elif suffix == ".npy":
        records = from_npy(whole, target, classes)
    elif suffix in (".csv", ".tsv"):
        x, found = read_csv(
            whole, "," if suffix == ".csv" else "\t", target=target, classes=classes, features=features
        )
        records = make_records(x, found)
    elif suffix in SVMLIGHT:
        if target is not None and target is not False:
            raise ArgumentError("target", "none: the labels come first in each line", repr(target))
        # Without a target the labels, which may be placeholders, need not be known classes.
        x, found = read_svmlight(whole, classes=None if target is False else classes, features=features)
        records = make_records(x, None if target is False else found)
    else:
        raise FileError(str(path), f"a file that ends in {', '.join(SUFFIXES)}", repr(suffix))
    if features is not None and records.x.shape[1] != features:
        raise FileError(str(path), f"{features} features", records.x.shape[1])
    return records
