"""Writing a folder of CSR arrays, whole or batch by batch: all of it appears at once, or nothing."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from gbnn.data.checks import check_values, is_sparse, real_array, real_csr
from gbnn.data.csr_folder import ABOUT, FORMAT
from gbnn.errors import ArgumentError, FileError, KindError, check_finite, check_list
from gbnn.rows import SparseRows
from gbnn.rows import is_sparse as is_sparse_batch

__all__ = ["save_csr", "save_csr_batches"]

Array = np.ndarray[Any, Any]

CHUNK = 2**13  # rows written at once


def save_csr(folder: str | Path, x: Any, y: Any = None, *, classes: Sequence[str] = ()) -> None:
    """Write a sparse matrix and its targets as a folder that `open_csr` reads without loading it.

    Parameters
    ----------
    folder : str or Path
        A new name. The folder appears under it when all is written.
    x : SciPy sparse, graphblas.Matrix or SparseRows, shape (rows, features)
        Sorted, and duplicates added up. float32 and float64 stay, other dtypes become float32.
    y : array_like or SciPy sparse, shape (rows,) or (rows, outputs), optional
        Sparse targets become float32.
    classes : sequence of str
        Names of the classes or labels, in the order of their numbers.

    Raises
    ------
    FileError
        If there is something of that name, or it cannot be written.
    ArgumentError, KindError, NonFiniteError
        If x and y are no such matrices, or do not fit each other.

    Examples
    --------
    >>> import tempfile
    >>> import scipy.sparse as sp
    >>> from gbnn import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data.save_csr(f"{folder}/eye", sp.eye_array(4))
    ...     data.open_csr(f"{folder}/eye")
    (MappedRows(4 x 4, nnz=4, float64), None)
    """
    rows = SparseRows.of(x, where="x")
    sparse = y is not None and is_sparse(y)
    target = None if y is None else real_csr("y", y) if sparse else real_array("y", y)
    if target is not None and (target.ndim not in (1, 2) or target.shape[0] != rows.shape[0]):
        wanted = f"shape ({rows.shape[0]},) or ({rows.shape[0]}, outputs), a row for each of x"
        raise ArgumentError("y", wanted, f"shape {target.shape}")

    def parts() -> Iterator[tuple[Any, Any]]:
        for first in range(0, rows.shape[0], CHUNK):
            part = slice(first, min(first + CHUNK, rows.shape[0]))
            yield rows.take(part), None if target is None else target[part]

    save_csr_batches(folder, parts(), classes=classes)


def save_csr_batches(
    folder: str | Path, batches: Iterable[tuple[Any, Any]], *, classes: Sequence[str] = ()
) -> None:
    r"""Write batches one after the other as one folder for `open_csr`, in the memory of one batch.

    Parameters
    ----------
    folder : str or Path
        A new name. The folder appears under it when all is written.
    batches : iterable of (x, y)
        Such as a `Stream`, or a generator. x as for `save_csr` or an array, of the same features and dtype in
        each batch; y None, or arrays or sparse matrices of the same dtype and width.
    classes : sequence of str
        Names of the classes or labels, in the order of their numbers.

    Raises
    ------
    FileError, ArgumentError, KindError, NonFiniteError
        As `save_csr`; where a batch is at fault, it is named by its number.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.svm").write_text("1 1:0.5 3:2\n0 2:1\n1 3:1\n")
    ...     stream = data.Stream(f"{folder}/a.svm", batch_size=2)
    ...     data.save_csr_batches(f"{folder}/a", stream, classes=stream.layout.classes)
    ...     data.open_csr(f"{folder}/a")
    (MappedRows(3 x 3, nnz=4, float32), array([1, 0, 1]))
    """
    if not isinstance(folder, (str, Path)):
        raise KindError("folder", "a string or Path", type(folder).__name__)
    if not isinstance(batches, Iterable):
        raise KindError("batches", "an iterable of pairs (x, y)", type(batches).__name__)
    names = [str(name) for name in check_list("classes", classes, "names")]
    try:
        with _Writer(Path(folder), names) as writer:
            for number, batch in enumerate(batches):
                writer.add(f"batch {number}", batch)
            writer.finish()
    except OSError as error:
        raise FileError(str(folder), "a folder that can be written", error) from None


class _Writer:
    """A folder being written, under another name until it is whole."""

    def __init__(self, folder: Path, classes: list[str]) -> None:
        self._folder, self._classes = folder, classes
        self._files = dict[str, _Growing]()
        self._rows = 0
        self._kind: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        if os.path.lexists(self._folder):
            raise FileError(str(self._folder), "a name that is free", "something that is there already")
        parent = self._folder.absolute().parent
        self._draft = Path(tempfile.mkdtemp(prefix=f".{self._folder.name}-", dir=parent))
        self._stack = ExitStack()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._stack.close()
        finally:
            shutil.rmtree(self._draft, ignore_errors=True)

    def add(self, where: str, batch: Any) -> None:
        """Write a batch, or raise naming it."""
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise KindError(where, "a pair (x, y)", type(batch).__name__)
        x, y = _samples(f"{where}, x", batch[0]), batch[1]
        if y is not None:
            y = _sparse_target(f"{where}, y", y) if is_sparse_batch(y) else real_array(f"{where}, y", y)
        kind = _kind(x, y)
        if self._kind is None:
            self._kind = kind
            self._file("indptr", np.int64).append(np.zeros(1, dtype=np.int64))
            if isinstance(y, SparseRows):
                self._file("y_indptr", np.int64).append(np.zeros(1, dtype=np.int64))
        elif kind != self._kind:
            raise ArgumentError(where, f"{self._kind} as in the first", kind)
        if y is not None and (y.shape[0] != x.shape[0] or len(y.shape) > 2 or 0 in y.shape):
            wanted = f"shape ({x.shape[0]},) or ({x.shape[0]}, outputs), a row for each of x"
            raise ArgumentError(f"{where}, y", wanted, f"shape {y.shape}")
        self._add_rows("", x)
        if isinstance(y, SparseRows):
            self._add_rows("y_", y)
        elif y is not None:
            check_values(f"{where}, y", y, np.dtype(np.float64))
            self._file("y", y.dtype, y.shape[1:]).append(y)
        self._rows += x.shape[0]

    def _add_rows(self, prefix: str, x: SparseRows) -> None:
        before = self._file(f"{prefix}data", x.dtype)
        self._file(f"{prefix}indptr", np.int64).append(x.starts[1:] + before.length)
        before.append(x.values)
        narrow = np.int32 if x.shape[1] <= 2**31 else np.int64
        self._file(f"{prefix}indices", narrow).append(x.columns.astype(narrow))

    def finish(self) -> None:
        """Give the folder its name."""
        if self._kind is None:
            raise ArgumentError("batches", "at least one batch", "none")
        outputs = self._kind["outputs"]
        width = outputs[-1] if outputs else None
        if self._classes and self._kind["sparse_y"] and width != len(self._classes):
            raise ArgumentError("classes", f"{width} names, one a label", len(self._classes))
        target = None
        if outputs is not None:
            target = {"sparse": self._kind["sparse_y"], "shape": list(outputs)}
        about = {"format": FORMAT, "shape": [self._rows, self._kind["features"]], "target": target}
        text = json.dumps(about | {"classes": self._classes}, indent=1)
        (self._draft / ABOUT).write_text(text, encoding="utf-8")
        self._stack.close()
        mask = os.umask(0)
        os.umask(mask)
        self._draft.chmod(0o777 & ~mask)
        self._draft.rename(self._folder)

    def _file(self, name: str, dtype: Any, row: tuple[int, ...] = ()) -> _Growing:
        if name not in self._files:
            path = self._draft / f"{name}.npy"
            self._files[name] = self._stack.enter_context(_Growing(path, np.dtype(dtype), row))
        return self._files[name]


def _kind(x: SparseRows, y: Any) -> dict[str, Any]:
    """Return what must be the same in all batches."""
    return {
        "features": x.shape[1],
        "dtype": str(x.dtype),
        "outputs": None if y is None else tuple(y.shape[1:]),
        "y": None if y is None else str(y.dtype),
        "sparse_y": isinstance(y, SparseRows),
    }


def _samples(where: str, x: Any) -> SparseRows:
    sparse = is_sparse_batch(x)
    rows = SparseRows.of(x, where=where) if sparse else SparseRows.from_dense(real_array(where, x))
    check_finite(where, rows.values)
    return rows


def _sparse_target(where: str, y: Any) -> SparseRows:
    rows = SparseRows.of(y, dtype=np.float32, where=where)
    check_finite(where, rows.values)
    return rows


class _Growing:
    """A .npy file that is written on and on; its header gets the length when it is closed."""

    def __init__(self, path: Path, dtype: np.dtype[Any], row: tuple[int, ...]) -> None:
        self._dtype, self._row = dtype, row
        self.length = 0
        self._file = open(path, "wb")  # noqa: SIM115
        self._file.write(self._header())

    def _header(self) -> bytes:
        # NumPy leaves room in it for the first dimension to grow to 21 digits.
        stream = io.BytesIO()
        about = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.length, *self._row)}
        np.lib.format.write_array_header_1_0(stream, about)
        return stream.getvalue()

    def append(self, array: Array) -> None:
        """Write more rows."""
        self._file.write(np.ascontiguousarray(array, dtype=self._dtype).data)
        self.length += len(array)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.seek(0)
            self._file.write(self._header())
        finally:
            self._file.close()
