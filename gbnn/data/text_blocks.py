"""Lines of ``label index:value ...`` in blocks: parsed fast, checked strictly, in constant memory."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gbnn.data import text_kernel as kernel
from gbnn.data.targets import INTEGER, is_number
from gbnn.errors import FileError

__all__ = ["Block", "Header", "blocks", "joined", "read_header"]

Array = np.ndarray[Any, Any]

BLOCK = 2**18  # bytes parsed at once
LINE_END = re.compile(rb"[\r\n]")
HEADER = re.compile(rb"[ \t]*([0-9]{1,19})[ \t]+([0-9]{1,19})[ \t]+([0-9]{1,19})[ \t]*(?:\r\n|\r|\n|\Z)")


class Header(NamedTuple):
    """The first line of the extreme-classification format."""

    rows: int
    features: int
    labels: int


class Block(NamedTuple):
    """Some rows of a file, as they are written there.

    Attributes
    ----------
    lines : ndarray of int64, shape (rows,)
        Their lines, counted from 1.
    starts, columns, values : ndarray
        The pairs as compressed rows: int64, int64, float32; indices ascending, none twice in a row.
    kinds : ndarray of uint8, shape (rows,)
        What the label is: NONE, INTEGER, SPELLED, LIST or TEXT of `text_kernel`.
    label_starts, labels : ndarray of int64
        The integers of each label, as compressed rows.
    texts : dict of int to str
        The label of the rows that are SPELLED or TEXT.
    """

    lines: Array
    starts: Array
    columns: Array
    values: Array
    kinds: Array
    label_starts: Array
    labels: Array
    texts: dict[int, str]

    def row_of(self, entry: int) -> int:
        """Return the row of a pair."""
        return int(np.searchsorted(self.starts, entry, side="right")) - 1

    def row_of_label(self, position: int) -> int:
        """Return the row of one of `labels`."""
        return int(np.searchsorted(self.label_starts, position, side="right")) - 1

    def text(self, row: int) -> str:
        """Return the label of a row as it is written (integers as Python writes them)."""
        return self.texts.get(row) or ",".join(
            map(str, self.labels[self.label_starts[row] : self.label_starts[row + 1]].tolist())
        )


def joined(parts: list[Block]) -> Block:
    """Return the rows of several blocks as one."""
    rows = np.cumsum([0, *(part.lines.size for part in parts)]).tolist()
    return Block(
        np.concatenate([part.lines for part in parts]),
        _joined_starts([part.starts for part in parts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.kinds for part in parts]),
        _joined_starts([part.label_starts for part in parts]),
        np.concatenate([part.labels for part in parts]),
        {
            first + row: text
            for first, part in zip(rows, parts, strict=False)
            for row, text in part.texts.items()
        },
    )


def _joined_starts(parts: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in parts]))])


def read_header(path: str | Path) -> Header | None:
    """Return the header ``rows features labels`` of a text file, None if its first line is none.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    with _opened(path) as stream:
        start = bytearray(128)
        with memoryview(start) as view:
            got = _read_into(str(path), stream, view)
    match = HEADER.match(start[:got])
    return None if match is None else Header(*map(int, match.groups()))


def blocks(path: str | Path, *, header: bool = False) -> Iterator[Block]:
    """Yield the rows of a text file, plain or compressed by gzip, some hundred kilobytes at a time.

    Parameters
    ----------
    path : str or Path
    header : bool
        Leave out the first line.

    Raises
    ------
    FileError
        Naming the line, if a row is not written as `gbnn.data.svmlight.read_svmlight` says.
    """
    where = str(path)
    buffer, filled = bytearray(BLOCK), 0
    room = _Room(BLOCK)
    line = 1
    with _opened(path) as stream:
        while True:
            # A byte is kept free for the newline that the last line may lack.
            if filled == len(buffer) - 1:  # one line fills it all
                buffer = buffer + bytes(len(buffer))
                room = _Room(len(buffer))
            with memoryview(buffer) as view:
                got = _read_into(f"{where}, after line {line - 1}", stream, view[filled:-1])
            filled += got
            if got:
                end = buffer.rfind(b"\n", 0, filled) + 1
            else:
                end = filled + 1
                buffer[filled] = 10
            begin = 0
            if header and end:
                begin = _after_line(buffer, 0)
                header, line = False, 2
            while begin < end:
                block, begin, line = room.parse(where, buffer, begin, end, line)
                if block is not None:
                    yield block
            if not got:
                return
            buffer[: filled - end] = buffer[end:filled]
            filled -= end


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    """Open a file to be read, decompressed if it is gzip's (told by its content)."""
    try:
        file = open(path, "rb")  # noqa: SIM115
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileError(str(path), "a readable file", error) from None
    with file:
        if not packed:
            yield file
            return
        with gzip.open(file, "rb") as stream:
            yield stream


def _read_into(place: str, stream: Any, view: memoryview) -> int:
    try:
        return int(stream.readinto(view))
    except EOFError:
        raise FileError(place, "a whole gzip file", "one that ends in the middle") from None
    except (OSError, zlib.error) as error:
        raise FileError(place, "a sound file", error) from None


def _after_line(buffer: bytearray, begin: int) -> int:
    """Return where the line after the one at `begin` begins; there is a newline."""
    match = LINE_END.search(buffer, begin)
    end = len(buffer) if match is None else match.end()
    return end + 1 if buffer[end - 1 : end + 1] == b"\r\n" else end


class _Room:
    """The arrays into which a buffer is parsed; they serve for one block after the other."""

    def __init__(self, size: int) -> None:
        # A row takes at least two bytes, but where all are so short a buffer is simply parsed in parts; a
        # pair takes four with the blank behind it, a label two.
        rows, pairs, labels = size // 16 + 1, size // 4 + 1, size // 2 + 1
        self.lines = np.empty(rows, dtype=np.int64)
        self.starts = np.zeros(rows + 1, dtype=np.int64)
        self.columns = np.empty(pairs, dtype=np.int64)
        self.values = np.empty(pairs, dtype=np.float32)
        self.kinds = np.empty(rows, dtype=np.uint8)
        self.spans = np.empty((rows, 2), dtype=np.int64)
        self.label_starts = np.zeros(rows + 1, dtype=np.int64)
        self.labels = np.empty(labels, dtype=np.int64)
        self.unsorted = np.empty(rows, dtype=np.bool_)

    def parse(
        self, where: str, buffer: bytearray, begin: int, end: int, line: int
    ) -> tuple[Block | None, int, int]:
        """Return rows (None if there are only comments), where the next begins, and on which line."""
        counts = np.array([begin, 0, 0, 0, line])
        text = np.frombuffer(buffer, dtype=np.uint8)
        texts = dict[int, str]()
        outputs = (self.lines, self.starts, self.columns, self.values, self.kinds, self.spans)
        done = 0
        while True:
            status = kernel.parse(text, end, counts, *outputs, self.label_starts, self.labels, self.unsorted)
            rows = int(counts[1])
            for row in np.flatnonzero(np.isin(self.kinds[done:rows], (kernel.SPELLED, kernel.TEXT))) + done:
                first, last = self.spans[row]
                place = f"{where}, line {self.lines[row]}"
                texts[int(row)] = _decoded(place, buffer[first:last])
            if status != kernel.ODD:
                break
            self._read_line(where, buffer, counts, texts)
            done = int(counts[1])
        if rows == 0:
            return None, int(counts[0]), int(counts[4])
        entries, labels = int(counts[2]), int(counts[3])
        self._sort(where, rows)
        block = Block(
            self.lines[:rows].copy(),
            self.starts[: rows + 1].copy(),
            self.columns[:entries].copy(),
            self.values[:entries].copy(),
            self.kinds[:rows].copy(),
            self.label_starts[: rows + 1].copy(),
            self.labels[:labels].copy(),
            texts,
        )
        return block, int(counts[0]), int(counts[4])

    def _read_line(self, where: str, buffer: bytearray, counts: Array, texts: dict[int, str]) -> None:
        """Read by Python the line that the kernel stopped at: add its row, or raise what is wrong with it."""
        begin, row, entry, label, line = (int(n) for n in counts)
        after = _after_line(buffer, begin)
        place = f"{where}, line {line}"
        tokens = _decoded(place, buffer[begin:after]).partition("#")[0].split()
        if tokens:
            name = "" if ":" in tokens[0] else tokens.pop(0)
            if tokens and tokens[0].startswith("qid:"):
                del tokens[0]
            keys, values = _pairs(place, tokens)
            self.columns[entry : entry + len(keys)] = keys
            self.values[entry : entry + len(keys)] = values
            kind, numbers = _label(name)
            self.labels[label : label + len(numbers)] = numbers
            self.kinds[row], self.lines[row] = kind, line
            self.unsorted[row] = True
            if kind in (kernel.SPELLED, kernel.TEXT):
                texts[row] = name
            row, entry, label = row + 1, entry + len(keys), label + len(numbers)
            self.starts[row], self.label_starts[row] = entry, label
        counts[:] = after, row, entry, label, line + 1

    def _sort(self, where: str, rows: int) -> None:
        """Put the indices of each row in order, or raise if one is there twice."""
        for row in np.flatnonzero(self.unsorted[:rows]):
            part = slice(self.starts[row], self.starts[row + 1])
            keys = self.columns[part]
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            _check_once(f"{where}, line {self.lines[row]}", keys)
            self.columns[part] = keys
            self.values[part] = self.values[part][order]


def _decoded(place: str, content: bytearray) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FileError(place, "text", error) from None


def _label(text: str) -> tuple[int, list[int]]:
    """Return the kind of a label and the integers it is made of."""
    if not text:
        return kernel.NONE, []
    if "," in text:
        parts = text.split(",")
        if all(part.isascii() and part.isdigit() and len(part) <= 18 for part in parts):
            return kernel.LIST, [int(part) for part in parts]
        return kernel.TEXT, []
    if INTEGER.fullmatch(text):
        return (kernel.INTEGER if text == str(int(text)) else kernel.SPELLED), [int(text)]
    return kernel.TEXT, []


def _pairs(where: str, tokens: list[str]) -> tuple[list[int], Array]:
    """Return the indices and the values of a line, or raise what is wrong with it."""
    try:
        parts = [token.split(":") for token in tokens]
        keys, values = [int(left) for left, _ in parts], [float(right) for _, right in parts]
        sound = min(keys, default=0) >= 0 and max(keys, default=0) <= kernel.MOST
    except ValueError:
        sound = False
    # Python reads more than the format has: 1_0, and digits of other scripts.
    text = "".join(tokens)
    if not sound or "_" in text or not text.isascii():
        raise FileError(where, "index:value pairs", repr(next(filter(_is_wrong, tokens), text)))
    _check_once(where, np.sort(np.array(keys, dtype=np.int64)))
    exact = np.array(values, dtype=np.float64)
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is reported as such
        narrow = exact.astype(np.float32)
    bad = ~np.isfinite(narrow)
    if bad.any():
        raise FileError(where, "finite float32 numbers", exact[bad][0])
    return keys, narrow


def _check_once(where: str, keys: Array) -> None:
    """Raise if one of these ascending indices is there twice."""
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if twice.size:
        raise FileError(where, "each index once", f"{keys[twice[0]]} twice")


def _is_wrong(token: str) -> bool:
    left, _, right = token.partition(":")
    short = left.isascii() and left.isdigit() and len(left) <= 19 and int(left) <= kernel.MOST
    return not (short and right.isascii() and is_number(right))
