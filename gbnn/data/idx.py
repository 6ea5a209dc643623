"""IDX, the file format of MNIST and its kin: a header of big-endian sizes, then unsigned bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gbnn.errors import FileError

__all__ = ["read_idx"]

Array = np.ndarray[Any, Any]

UNSIGNED_BYTE = 8  # the code of the only element type these data sets use
CHUNK = 2**20  # bytes read at once: memory grows with what the file holds, not with what it claims


def read_idx(path: str | Path, dimensions: int) -> Array:
    """Read an IDX file of unsigned bytes, plain or gzip-compressed (told by its content, not its name).

    Parameters
    ----------
    path : str or Path
    dimensions : int
        How many dimensions the array must have: 3 for images, 1 for labels.

    Returns
    -------
    ndarray of uint8, with as many dimensions, in C order

    Raises
    ------
    FileError
        If the file cannot be read, is not an IDX file of that kind, is damaged, or is not exactly as long as
        its header says. Memory grows with what the file holds, not with what its header claims.

    Notes
    -----
    The format is described at the end of http://yann.lecun.com/exdb/mnist/.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data import read_idx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + bytes([7, 2, 1]))
    ...     read_idx(path, 1)
    array([7, 2, 1], dtype=uint8)
    """
    where = str(path)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if not packed:
                return _parse(where, file, size, dimensions)
            with gzip.open(file, "rb") as stream:
                return _parse(where, stream, None, dimensions)
    except EOFError:
        raise FileError(where, "a whole gzip file", "one that ends in the middle") from None
    except zlib.error as error:
        raise FileError(where, "a sound gzip file", error) from None
    except OSError as error:  # gzip.BadGzipFile too
        raise FileError(where, "a readable IDX file", error) from None


def _parse(where: str, stream: Any, length: int | None, dimensions: int) -> Array:
    """Read header and bytes; `length` is that of the content, if it is known beforehand."""
    header = 4 + 4 * dimensions
    start = stream.read(header)
    magic = bytes([0, 0, UNSIGNED_BYTE, dimensions])
    if start[:4] != magic:
        wanted = f"an IDX file of unsigned bytes in {dimensions} dimensions (it starts with {magic.hex(' ')})"
        raise FileError(where, wanted, start[:4].hex(" ") or "an empty file")
    if len(start) < header:
        raise FileError(where, f"an IDX header of {header} bytes", f"{len(start)} bytes")
    shape = struct.unpack(f">{dimensions}I", start[4:])
    count = math.prod(shape)
    wanted = f"{header + count} bytes for the shape {shape} in its header"
    if count == 0:
        raise FileError(where, "at least one entry", f"shape {shape} in its header")
    if length is not None and length != header + count:
        raise FileError(where, wanted, f"{length} bytes")
    content = _read(stream, count + 1)  # one more than there may be: also makes gzip check its sum
    if len(content) != count:
        came = "more" if len(content) > count else f"{header + len(content)}"
        raise FileError(where, wanted, f"{came} bytes")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _read(stream: BinaryIO, count: int) -> bytearray:
    content = bytearray()
    while len(content) < count:
        chunk = stream.read(min(CHUNK, count - len(content)))
        if not chunk:
            break
        content += chunk
    return content
