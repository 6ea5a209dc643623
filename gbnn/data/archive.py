"""Strict reading of ``.npy`` and ``.npz``: never pickled, never larger than the file can hold."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.errors import FileError

__all__ = ["Archive", "map_npy", "read_npy"]

Array = np.ndarray[Any, Any]

# A deflate stream never grows by more than this on decompression: a bound on what an entry can hold, so that
# one which claims more is found out before any memory is set aside for it.
DEFLATE_RATIO = 1032

SPARSE_PARTS = ("data", "indices", "indptr", "shape")


def read_npy(path: str | Path) -> Array:
    """Read one array from a ``.npy`` file.

    Raises
    ------
    FileError
        If it cannot be read, holds Python objects, or is not as long as its header says.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from gbnn.data.archive import read_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), [1, 2])
    ...     read_npy(Path(folder, "x.npy"))
    array([1, 2])
    """
    where = str(path)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            return _read_array(where, file, size)
    except OSError as error:
        raise FileError(where, "a readable file", error) from None


def map_npy(path: str | Path) -> Array:
    """Map one array of a ``.npy`` file into memory, read-only: only what is looked at is read.

    Raises
    ------
    FileError
        As `read_npy` does.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from gbnn.data.archive import map_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "x.npy"), [1, 2])
    ...     map_npy(Path(folder, "x.npy"))
    array([1, 2])
    """
    where = str(path)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            shape, fortran, dtype = _read_header(where, file, size)
            if math.prod(shape) == 0:
                return np.empty(shape, dtype)
            order: Any = "F" if fortran else "C"
            mapped = np.memmap(file, dtype, mode="r", offset=file.tell(), shape=shape, order=order)
            return np.asarray(mapped)
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(where, "a readable file", error) from None


class Archive:
    """A ``.npz`` file: named arrays, and CSR matrices made of several.

    Parameters
    ----------
    path : str or Path

    Notes
    -----
    Arrays ``K_data, K_indices, K_indptr, K_shape`` are one CSR matrix K; what `scipy.sparse.save_npz` writes
    (the same without the ``K_``) is the only matrix in its file, and is named "".

    Raises
    ------
    FileError
        On opening and on reading alike, if the file is not such an archive or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from gbnn.data.archive import Archive
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "a.npz"), x=[1.0], y=[2])
    ...     archive = Archive(Path(folder, "a.npz"))
    ...     archive.names, archive.get("y")
    (('x', 'y'), array([2]))
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as file:
                entries = file.namelist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise FileError(str(path), "a NumPy .npz archive", error) from None
        self._arrays = [name.removesuffix(".npy") for name in entries if name.endswith(".npy")]
        if {"format", *SPARSE_PARTS} <= set(self._arrays):
            self._sparse = {""}
        else:
            self._sparse = {n.removesuffix("_indptr") for n in self._arrays if n.endswith("_indptr")}
        parts = {self._part(name, part) for name in self._sparse for part in (*SPARSE_PARTS, "format")}
        if "" in self._sparse:
            parts.add("_is_array")  # which of its two classes SciPy saved
        self.names = tuple(sorted({*self._sparse, *self._arrays} - parts))
        """Names of matrices and of the arrays that are not parts of one."""

    @staticmethod
    def _part(name: str, part: str) -> str:
        return f"{name}_{part}" if name else part

    def where(self, name: str) -> str:
        """Return what to call a matrix or array of this file in an error."""
        return f"{self.path}[{name!r}]" if name else str(self.path)

    def get(self, name: str) -> Any:
        """Return the array or, for a sparse one, `scipy.sparse.csr_array` of that name."""
        return self._csr(name) if name in self._sparse else self._array(name)

    def _array(self, name: str) -> Array:
        where = self.where(name)
        try:
            with zipfile.ZipFile(self.path) as file:
                entry = file.getinfo(f"{name}.npy")
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise FileError(where, "stored or deflated data", f"zip method {entry.compress_type}")
                if entry.file_size > entry.compress_size * DEFLATE_RATIO:
                    most = f"at most {entry.compress_size * DEFLATE_RATIO} bytes"
                    raise FileError(where, most, f"{entry.file_size} promised")
                with file.open(entry) as stream:
                    return _read_array(where, stream, entry.file_size)
        except KeyError:
            raise FileError(str(self.path), f"an array {name!r}", f"arrays {sorted(self._arrays)}") from None
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise FileError(where, "a sound archive", error) from None

    def _csr(self, name: str) -> Any:
        where = self.where(name)
        if not name:
            kind = self._array("format")
            if kind.shape != () or kind.item() not in (b"csr", "csr"):
                raise FileError(where, "a matrix saved as CSR", f"format {kind.tolist()!r}")
        data, indices, indptr, shape = (self._array(self._part(name, part)) for part in SPARSE_PARTS)
        if data.ndim != 1 or data.dtype.kind not in "fiub":
            raise FileError(where, "1-D data of real numbers", f"{data.dtype} of shape {data.shape}")
        for part, array in (("indices", indices), ("indptr", indptr), ("shape", shape)):
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise FileError(where, f"{part}: 1-D integers", f"{array.dtype} of shape {array.shape}")
        if shape.size != 2 or int(shape.min()) < 1 or int(shape.max()) > 2**60:
            raise FileError(where, "a shape of two numbers from 1 to 2**60", shape.tolist())
        rows, columns = (int(n) for n in shape)
        if indptr.size != rows + 1 or indices.size != data.size:
            wanted = f"{rows + 1} row pointers, and as many indices as data"
            raise FileError(where, wanted, f"{indptr.size}, and {indices.size} for {data.size}")
        # Compared before any cast: unsigned and wider integers must not wrap into range.
        if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= columns):
            came = f"{indices.min()} to {indices.max()}"
            raise FileError(where, f"column indices from 0 to {columns - 1}", came)
        if int(indptr[0]) != 0 or int(indptr[-1]) != data.size or bool((indptr[1:] < indptr[:-1]).any()):
            raise FileError(where, f"row pointers that rise from 0 to {data.size}", "others")
        signed = [a.astype(np.int64) for a in (indices, indptr)]
        data = data.astype(np.float32) if data.dtype == np.float16 else _native(data)
        matrix = sp.csr_array((data, *signed), shape=(rows, columns))
        matrix.sort_indices()
        if not matrix.has_canonical_format:
            raise FileError(where, "each column once in a row", "duplicates")
        return matrix


def _native(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _read_header(where: str, stream: Any, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of NumPy's format: shape, whether in Fortran order, dtype; `size` bytes are all."""
    form = np.lib.format
    try:
        version = form.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise FileError(where, "NumPy format 1.0 or 2.0", f"{version[0]}.{version[1]}")
        read_header = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
        if dtype.hasobject:
            raise FileError(where, "an array without Python objects (they would have to be unpickled)", dtype)
        if min(shape, default=0) < 0:
            raise FileError(where, "a shape", shape)
        length = stream.tell() + math.prod(shape) * dtype.itemsize
        if length != size:
            raise FileError(where, f"{length} bytes for {dtype} of shape {shape}", f"{size} bytes")
        return shape, fortran, dtype
    except FileError:
        raise
    except Exception as error:  # NumPy's parser, zlib and zipfile share no base for what a foreign file does
        raise FileError(where, "an array in NumPy's format", f"{type(error).__name__}: {error}") from None


def _read_array(where: str, stream: Any, size: int) -> Array:
    """Read an array in NumPy's format from a seekable stream of `size` bytes."""
    _, _, dtype = _read_header(where, stream, size)
    try:
        stream.seek(0)
        # With the last byte of an archive's entry zipfile compares checksums.
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as error:  # NumPy's parser, zlib and zipfile share no base for what a foreign file does
        raise FileError(where, "an array in NumPy's format", f"{type(error).__name__}: {error}") from None
    return _native(array) if dtype.kind in "fiu" else array
