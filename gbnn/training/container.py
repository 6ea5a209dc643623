"""One safetensors file of arrays and a text: written whole or not at all, and whole when it is read."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from gbnn.errors import ArgumentError, FileError, KindError

__all__ = ["as_path", "checksum", "new_file", "read", "replacing", "write"]

Array = np.ndarray[Any, Any]

KEY = "gbnn"
"""Where the text stands in a file's metadata. One key only: safetensors writes several in any order."""

CHECKSUM = "crc32"
"""The array that holds the checksum."""

MAX_TEXT = 50_000_000
"""Bytes of text: safetensors itself reads at most 100 MB of text, names and shapes."""


def checksum(text: str, tensors: Mapping[str, Array]) -> int:
    """Return the CRC-32 of a text and of arrays: their names, dtypes, shapes and bytes (in C order)."""
    crc = zlib.crc32(text.encode())
    for name, array in sorted(tensors.items()):
        crc = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), crc)
        crc = zlib.crc32(np.asarray(array, order="C").reshape(-1).view(np.uint8).data, crc)
    return crc


def as_path(path: Any) -> Path:
    """Return a path, or raise KindError."""
    try:
        return Path(path)
    except TypeError:
        raise KindError("path", "a path: a str or pathlib.Path", type(path).__name__) from None


def new_file(path: Any) -> Path:
    """Return where a file can be made or replaced, links followed; FileError if it cannot be there."""
    path = as_path(path)
    reason = _no_file(path)
    if reason is None:
        real = Path(os.path.realpath(path))
        if os.access(real.parent, os.W_OK | os.X_OK):
            return real
        missing = not os.path.isdir(real.parent)
        reason = f"no folder {path.parent}" if missing else "a folder where nothing may be written"
    raise FileError(str(path), "a file that can be written", reason)


def _no_file(path: Path) -> object:
    """Return why there can be no file at a path, as far as what is there tells; None if there can be.

    A folder, pipe or device is no file: to rename a file to it would even replace a device.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return _reason(error)
    return None if stat.S_ISREG(mode) else "a folder" if stat.S_ISDIR(mode) else "a device or pipe"


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give the name of a new, empty file beside `path`; when it is filled and on disk, rename it to `path`.

    FileError if that fails; what stood at `path` is then still there, and nothing else.
    """
    real = new_file(path)
    temporary = real.parent / f".gbnn-{secrets.token_hex(8)}.part"
    try:
        # Made here first, to learn the mode that any new file gets in this place.
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            mode = os.fstat(handle).st_mode & 0o777
        finally:
            os.close(handle)
        yield temporary
        os.chmod(temporary, mode)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, real)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise FileError(str(path), "a file that can be written", _reason(error)) from None
    finally:
        with contextlib.suppress(OSError, ValueError):  # renamed by now, or never made
            temporary.unlink()


def _reason(error: Exception) -> object:
    return getattr(error, "strerror", None) or error


def write(path: Any, tensors: Mapping[str, Array], text: str) -> None:
    """Write arrays and a text, and put them in the place of `path` as `replacing` does."""
    if len(text) > MAX_TEXT:
        raise ArgumentError("metadata", f"at most {MAX_TEXT:,} bytes as JSON, the model included", len(text))
    # safetensors takes the memory as it lies: anything but C order would come back transposed.
    # Files are little-endian, and the machines that safetensors runs on.
    held = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        for name, array in tensors.items()
    }
    held[CHECKSUM] = np.array([checksum(text, held)], dtype=np.uint32)
    with replacing(path) as temporary:
        safetensors.numpy.save_file(held, temporary, metadata={KEY: text})


def read(path: Any) -> tuple[dict[str, Array], str]:
    """Return the arrays and the text of a file that `write` wrote; the checksum is among the arrays."""
    path = as_path(path)
    reason = _no_file(path)
    if reason is not None:  # a pipe, say, from which nothing may ever come
        raise FileError(str(path), "a file", reason)
    try:
        path.open("rb").close()  # for the system's own words: safetensors knows only whether it worked
        with safetensors.safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(KEY)
            if text is None:
                raise FileError(str(path), "a model saved by gbnn", "a safetensors file of something else")
            return {name: file.get_tensor(name) for name in file.keys()}, text  # noqa: SIM118
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(str(path), "a file", "none there") from None
    except Exception as error:  # whatever the parser makes of a file that is none
        raise FileError(str(path), "a whole safetensors file", _reason(error)) from None
