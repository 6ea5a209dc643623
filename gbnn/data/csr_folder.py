"""A folder of CSR arrays that stay on disk: rows are read, and checked, as they are asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.archive import map_npy
from gbnn.data.gather import StoredRows, first_unsound
from gbnn.edges import MAX_FEATURES
from gbnn.errors import FileError
from gbnn.rows import SparseRows

__all__ = ["MappedRows", "is_csr_folder", "open_csr", "read_about"]

Array = np.ndarray[Any, Any]

ABOUT = "about.json"
FORMAT = "gbnn CSR folder 1"


def is_csr_folder(path: str | Path) -> bool:
    """Whether this is a folder that `save_csr` may have made."""
    try:
        return Path(path, ABOUT).is_file()
    except (OSError, ValueError):  # a name too long, or with a NUL inside
        return False


def open_csr(folder: str | Path) -> tuple[MappedRows, Any]:
    """Open a folder that `save_csr` made, in constant time and memory.

    Parameters
    ----------
    folder : str or Path
        Its files must not change while they are in use.

    Returns
    -------
    x : MappedRows, shape (rows, features)
    y : numpy.ndarray, MappedRows or None
        Mapped, too: classes or numbers, shape (rows,) or (rows, outputs), or several labels a row.

    Raises
    ------
    FileError
        If sizes, dtypes or ends do not fit each other. What is inside is checked row by row, as it is read.

    Notes
    -----
    `data.npy` (float32 or float64), `indices.npy` (int32 or int64) and `indptr.npy` (int64) are the arrays of
    a SciPy CSR matrix: ``np.load(..., mmap_mode="r")`` reads them. A dense y is `y.npy`, a sparse one
    `y_data.npy`, `y_indices.npy` and `y_indptr.npy`; `about.json` has the shapes and names of classes.

    Examples
    --------
    >>> import tempfile
    >>> import scipy.sparse as sp
    >>> from gbnn import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data.save_csr(f"{folder}/eye", sp.eye_array(4), [0, 1, 0, 1])
    ...     x, y = data.open_csr(f"{folder}/eye")
    ...     print(x, y)
    ...     for x_batch, y_batch in data.Batches(x, y, batch_size=2, shuffle=False):
    ...         print(x_batch, y_batch)
    MappedRows(4 x 4, nnz=4, float64) [0 1 0 1]
    SparseRows(2 x 4, nnz=2, float32) [0 1]
    SparseRows(2 x 4, nnz=2, float32) [0 1]
    """
    about = read_about(folder)
    rows, features = about["shape"]
    x = MappedRows(folder, "", (rows, features))
    target = about["target"]
    if target is None:
        return x, None
    if target["sparse"]:
        return x, MappedRows(folder, "y_", (rows, target["shape"][0]))
    y = map_npy(Path(folder, "y.npy"))
    shape = (rows, *target["shape"])
    if y.shape != shape or y.dtype.kind not in "fiub":
        wanted = f"real numbers of shape {shape}"
        raise FileError(str(Path(folder, "y.npy")), wanted, f"{y.dtype} of shape {y.shape}")
    return x, y


def read_about(folder: str | Path) -> dict[str, Any]:
    """Return what `about.json` says: shape (rows, features), target (or None), classes."""
    path = Path(folder, ABOUT)
    where = str(path)
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # not JSON, or not even text
        raise FileError(where, "a folder that save_csr made", error) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError(where, f'"format": "{FORMAT}"', "another")
    if not (_is_shape(about.get("shape"), (2,))):
        raise FileError(where, '"shape" of two numbers from 1 to 2**60', about.get("shape"))
    target, classes = about.get("target"), about.get("classes")
    sound = target is None or (
        isinstance(target, dict)
        and isinstance(target.get("sparse"), bool)
        and _is_shape(target.get("shape"), (1,) if target["sparse"] else (0, 1))
    )
    if not sound:
        raise FileError(where, '"target": null, or sparse and shape of a row', target)
    if not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise FileError(where, '"classes": a list of names', classes)
    return {"shape": tuple(about["shape"]), "target": target, "classes": tuple(classes)}


def _is_shape(shape: Any, dimensions: Sequence[int]) -> bool:
    listed = isinstance(shape, list) and len(shape) in dimensions
    return listed and all(type(n) is int and 1 <= n <= MAX_FEATURES for n in shape)


class MappedRows(StoredRows):
    """The rows of a CSR matrix on disk, made by `open_csr`; `Batches`, `fit` and `evaluate` take them.

    Attributes
    ----------
    shape : (int, int)
    nnz : int
    dtype : numpy.dtype
        float32 or float64.
    """

    def __init__(self, folder: str | Path, prefix: str, shape: tuple[int, int]) -> None:
        paths = [Path(folder, f"{prefix}{part}.npy") for part in ("data", "indices", "indptr")]
        self._where = str(Path(folder)) + (f" ({prefix}*.npy)" if prefix else "")
        values, columns, starts = (map_npy(path) for path in paths)
        for path, array, dtypes, size in (
            (paths[0], values, (np.float32, np.float64), columns.size),
            (paths[1], columns, (np.int32, np.int64), values.size),
            (paths[2], starts, (np.int64,), shape[0] + 1),
        ):
            if array.dtype not in dtypes or array.shape != (size,):
                wanted = f"{' or '.join(np.dtype(d).name for d in dtypes)} of shape ({size},)"
                raise FileError(str(path), wanted, f"{array.dtype} of shape {array.shape}")
        if (starts[0], starts[-1]) != (0, values.size):
            raise FileError(str(paths[2]), f"ends 0 and {values.size}", f"{starts[0]} and {starts[-1]}")
        super().__init__(starts, columns, values, shape)

    def take(self, rows: Any) -> SparseRows:
        """Return these rows, a slice or an array of row numbers, in the order given.

        Raises
        ------
        FileError
            Naming the row, if what is there are no ascending columns of finite numbers.
        ArgumentError, KindError
            If there are no such rows.
        """
        batch = super().take(rows)
        bad = first_unsound(batch.starts, batch.columns, batch.values, self.shape[1])
        if bad >= 0:
            raise self._damaged(np.arange(self.shape[0])[rows][bad], "others")
        return batch

    def to_scipy(self) -> Any:
        """Return all of it, checked, as a `scipy.sparse.csr_array` in memory."""
        rows = self.take(slice(None))
        return sp.csr_array((rows.values, rows.columns, rows.starts), shape=self.shape)

    def _check_spans(self, picked: Array, first: Array, last: Array) -> None:
        wrong = (first < 0) | (last < first) | (last > self.nnz)
        if wrong.any():
            raise self._damaged(picked[np.argmax(wrong)], "row pointers that do not rise")

    def _damaged(self, row: Any, came: str) -> FileError:
        wanted = f"ascending columns from 0 to {self.shape[1] - 1} with finite numbers"
        return FileError(f"{self._where}, row {row}", wanted, came)
