"""Samples and targets from files: npz, npy, csv, tsv, svmlight and its kin, folders, and pairs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gbnn.data.csr_folder import MappedRows, is_csr_folder, open_csr, read_about
from gbnn.data.layout import Known
from gbnn.data.numpy_files import Records, from_npy, from_npz, from_pair, make_records, target_array
from gbnn.data.svmlight import read_svmlight
from gbnn.data.table import read_csv
from gbnn.data.targets import Target, from_array
from gbnn.data.text_blocks import read_header
from gbnn.errors import ArgumentError, FileError, KindError, check_bool

__all__ = ["Records", "read", "read_records"]

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
SUFFIXES = (".npz", ".npy", ".csv", ".tsv", *SVMLIGHT)


def read(
    path: str | Path,
    *,
    target: str | int | bool | None = None,
    classes: Sequence[str] | None = None,
    features: int | None = None,
    zero_based: bool | None = None,
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
        - ``.svm``, ``.svmlight``, ``.libsvm``: ``label index:value ...``, indices from 1 unless there is a 0;
          also compressed: ``.svm.gz``. A file that was cut may read as a shorter one: the format does not say
          how long it is (the next one does).
        - ``.txt`` (and those) with a first line ``rows features labels``, then ``label,... index:value ...``,
          all from 0, as in the Extreme Classification Repository; also compressed: ``.txt.gz``.
        - a folder that `save_csr` made, all of it (`open_csr` leaves it on disk).
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
    zero_based : bool, optional
        svmlight: whether indices count from 0. None: they do if there is a 0 in the file. A test file without
        one is read as its training file was by `zero_based=records.zero_based` of `read_records`.

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
    records = read_records(path, target=target, classes=classes, features=features, zero_based=zero_based)
    return records.x, records.y


def read_records(
    path: str | Path,
    *,
    target: str | int | bool | None = None,
    classes: Sequence[str] | None = None,
    features: int | None = None,
    zero_based: bool | None = None,
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
    if zero_based is not None:
        check_bool("zero_based", zero_based)
    pair = str(path).split(",")
    if len(pair) == 2 and not os.path.exists(path):
        return from_pair(pair[0].strip(), pair[1].strip(), target, classes, features)
    if is_csr_folder(path):
        records = _of_folder(path, target, classes)
    # os.path answers False where a Path raises: for names too long or with a NUL inside.
    elif not os.path.isfile(path):
        other = "a folder" if os.path.isdir(path) else "a pipe or device"
        raise FileError(str(path), "a file", other if os.path.exists(path) else "nothing of that name")
    else:
        records = _of_file(Path(path), target, classes, features, zero_based)
    if features is not None and records.x.shape[1] != features:
        raise FileError(str(path), f"{features} features", records.x.shape[1])
    return records


def _of_file(
    path: Path,
    target: Any,
    classes: Sequence[str] | None,
    features: int | None,
    zero_based: bool | None,
) -> Records:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return from_npz(path, target, classes)
    if suffix == ".npy":
        return from_npy(path, target, classes)
    if suffix in (".csv", ".tsv"):
        comma = "," if suffix == ".csv" else "\t"
        x, found = read_csv(path, comma, target=target, classes=classes, features=features)
        return make_records(x, found)
    if suffix == ".gz":
        suffix = path.with_suffix("").suffix.lower()
    if suffix in SVMLIGHT or (suffix == ".txt" and read_header(path) is not None):
        if target is not None and target is not False:
            raise ArgumentError("target", "none: the labels come first in each line", repr(target))
        # Without a target the labels, which may be placeholders, need not be known classes.
        known = None if target is False else classes
        given = Known(features, known, zero_based)
        x, found, layout = read_svmlight(path, given, targets=target is not False)
        return make_records(x, found, zero_based=layout.zero_based)
    wanted = f"a file that ends in {', '.join(SUFFIXES)}"
    if suffix == ".txt":
        wanted += ", or a first line of rows, features and labels"
    raise FileError(str(path), wanted, repr(path.suffix.lower()))


def _of_folder(path: str | Path, target: Any, classes: Sequence[str] | None) -> Records:
    if target is not None and target is not False:
        raise ArgumentError("target", "none: the folder says what the targets are", repr(target))
    x, y = open_csr(path)
    samples = x.to_scipy()
    if y is None or target is False:
        return Records(samples)
    names = read_about(path)["classes"]
    if names and not isinstance(y, MappedRows) and y.ndim == 1 and y.dtype.kind in "iu":
        return make_records(samples, _of_numbers(str(path), y, names, classes))
    y = y.to_scipy() if isinstance(y, MappedRows) else target_array(f"{path}[y]", np.array(y), len(x))
    found = from_array(lambda row: f"{path}[y], row {row}", y, classes or names or classes)
    return make_records(samples, found)


def _of_numbers(where: str, y: Any, names: tuple[str, ...], classes: Sequence[str] | None) -> Target:
    """Return classes that are stored as positions among `names` as those among `classes`."""
    bad = (y < 0) | (y >= len(names))
    if bad.any():
        row = int(bad.argmax())
        raise FileError(f"{where}[y], row {row}", f"class numbers from 0 to {len(names) - 1}", y[row])
    if classes is not None and not classes:
        return from_array(lambda row: f"{where}[y], row {row}", y, classes)
    if classes is None or tuple(classes) == names:
        return Target(y.astype(np.int64), names, "cross_entropy")
    return from_array(lambda row: f"{where}[y], row {row}", np.array(names)[y], classes)
