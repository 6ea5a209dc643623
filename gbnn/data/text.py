"""Strict readers of text: csv, tsv and svmlight. Every error names the line."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.targets import Target, from_label_sets, from_text
from gbnn.errors import ArgumentError, FileError

__all__ = ["column_number", "read_csv", "read_svmlight"]

Array = np.ndarray[Any, Any]
Row = tuple[int, list[str]]  # number of its (last) line, fields


def column_number(target: Any) -> int | None:
    """Return an int, or a string that is one, as a column number; None for anything else."""
    if isinstance(target, (int, np.integer)) and not isinstance(target, bool):
        return int(target)
    try:
        return int(target) if isinstance(target, str) else None
    except ValueError:
        return None


def read_csv(
    path: str | Path,
    delimiter: str = ",",
    *,
    target: str | int | bool | None = None,
    classes: Sequence[str] | None = None,
    features: int | None = None,
) -> tuple[Array, Target | None]:
    """Read a table of numbers with one target column.

    Parameters
    ----------
    path : str or Path
        UTF-8 text; the first line may name the columns (it does if at least half of its feature fields are not
        numbers, or its target is none while the next is one).
    delimiter : str
    target : str, int or False, optional
        Name or number (from 0; negative: from the end) of the target column; False: there is none. By default
        the last column, unless the file has just `features` columns.
    classes : sequence of str, optional
        See `gbnn.data.read`.
    features : int, optional
        How many feature columns there must be.

    Returns
    -------
    x : ndarray of float32, shape (rows, features), C order
    target : Target or None

    Raises
    ------
    FileError
        On rows of unequal length, fields that are not finite numbers, no rows, no features.
    ArgumentError
        If there is no such target column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data.text import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text("kind,weight\\ncat,4.5\\nant,0.25\\n")
    ...     x, target = read_csv(path, target="kind")
    >>> x.tolist(), target.y, target.classes
    ([[4.5], [0.25]], array([1, 0]), ('ant', 'cat'))
    """
    where = str(path)
    try:
        # "utf-8-sig" drops the byte order mark that spreadsheets write.
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = _rows(where, csv.reader(file, delimiter=delimiter, strict=True))
            first, second = next(rows, None), next(rows, None)
            if first is None:
                raise FileError(where, "rows of numbers", "an empty file")
            column, header = _layout(where, first, second, target, features)
            width = len(first[1]) - (column is not None)  # before the target is taken out of the row
            body = chain([] if header else [first], [] if second is None else [second], rows)
            values, fields, lines = _table(where, body, first, column)
    except UnicodeDecodeError as error:
        raise FileError(where, "UTF-8 text", error) from None
    except OSError as error:
        raise FileError(where, "a readable file", error) from None
    if not lines:
        raise FileError(where, "rows below its header", "none")
    if features is not None and width != features:
        raise FileError(where, f"{features} feature columns", width)
    x = np.frombuffer(values, dtype=np.float64).reshape(len(lines), width)
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is reported as such
        narrow: Array = x.astype(np.float32)
    finite = np.isfinite(narrow)
    if not finite.all():
        row, at = np.unravel_index(int(np.argmin(finite)), finite.shape)
        raise FileError(f"{where}, line {lines[int(row)]}", "finite float32 numbers", x[row, at])
    if column is None:
        return narrow, None
    return narrow, from_text(lambda i: f"{where}, line {lines[i]}", fields, classes)


def _rows(where: str, reader: Any) -> Iterator[Row]:
    try:
        for row in reader:
            if row:  # an empty line has no fields
                yield reader.line_num, row
    except csv.Error as error:
        raise FileError(f"{where}, line {reader.line_num}", "well-formed fields", error) from None


def _layout(
    where: str, first: Row, second: Row | None, target: Any, features: int | None
) -> tuple[Any, bool]:
    """Return the number of the target column, or None, and whether the first row is a header."""
    names = [field.strip() for field in first[1]]
    width = len(names)
    if target is None:
        column = None if width == features else width - 1
    elif target is False:
        column = None
    elif isinstance(target, str) and target in names and column_number(target) is None:
        if names.count(target) > 1:
            raise ArgumentError("target", f"a name that one column of {where} has", repr(target))
        return names.index(target), True
    else:
        number = column_number(target)
        if number is None or not -width <= number < width:
            wanted = f"one of the columns of {where}: 0 to {width - 1}"
            wanted += "" if all(map(_is_number, names)) else f", or a name such as {names[0]!r}"
            raise ArgumentError("target", wanted, repr(target))
        column = number % width
    if column is not None and width == 1:
        raise FileError(where, "a feature column beside the target", "one column")
    others = [name for i, name in enumerate(names) if i != column]
    # An empty field is a missing number, and one word among numbers a mistake to report: neither is a header.
    words = sum(bool(name) and not _is_number(name) for name in others)
    if 2 * words >= len(others):
        return column, True
    if column is None or second is None or len(second[1]) != width:
        return column, False
    return column, not _is_number(names[column]) and _is_number(second[1][column])


def _table(where: str, rows: Iterator[Row], first: Row, column: int | None) -> tuple[Any, list[str], Any]:
    values, fields, lines = array("d"), list[str](), array("q")
    width = len(first[1])
    for line, row in rows:
        if len(row) != width:
            raise FileError(f"{where}, line {line}", f"{width} fields as in line {first[0]}", len(row))
        if column is not None:
            fields.append(row.pop(column).strip())
        try:
            values.extend(map(float, row))
            plain = "_" not in "".join(row)  # float() reads 1_0 as 10
        except ValueError:
            plain = False
        if not plain:
            bad = next(field for field in row if not _is_number(field))
            raise FileError(f"{where}, line {line}", "a number in each feature column", repr(bad))
        lines.append(line)
    return values, fields, lines


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def read_svmlight(
    path: str | Path,
    *,
    classes: Sequence[str] | None = None,
    features: int | None = None,
) -> tuple[Any, Target]:
    """Read ``label index:value ...`` lines, the format of SVMlight and LIBSVM.

    Parameters
    ----------
    path : str or Path
        Text. ``#`` starts a comment; ``qid:`` is skipped; several labels of a row are joined by commas, and a
        row may have none if any has several. Indices count from 1, or from 0 if there is a 0 in the file.
    classes : sequence of str, optional
        See `gbnn.data.read`.
    features : int, optional
        How many there are; by default as many as the largest index says.

    Returns
    -------
    x : csr_array of float32, shape (rows, features)
    target : Target

    Raises
    ------
    FileError
        On anything else: words, negative or repeated indices, numbers that are not finite, no rows, an index
        beyond `features`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data.text import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1 # a comment\\n")
    ...     x, target = read_svmlight(path)
    >>> x.toarray().tolist(), target.y, target.classes
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], array([1, 0]), ('-1', '1'))
    """
    where = str(path)
    labels, lines = list[str](), array("q")
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    try:
        with open(path, encoding="utf-8") as file:
            for line, text in enumerate(file, start=1):
                tokens = text.partition("#")[0].split()
                if not tokens:
                    continue
                labels.append("" if ":" in tokens[0] else tokens.pop(0))
                if tokens and tokens[0].startswith("qid:"):
                    del tokens[0]
                row = _pairs(f"{where}, line {line}", tokens)
                indices.extend(k for k, _ in row)
                data.extend(v for _, v in row)
                indptr.append(len(indices))
                lines.append(line)
    except UnicodeDecodeError as error:
        raise FileError(where, "text", error) from None
    except OSError as error:
        raise FileError(where, "a readable file", error) from None
    if not lines:
        raise FileError(where, "lines of label index:value ...", "none")

    def place(row: int) -> str:
        return f"{where}, line {lines[row]}"

    columns = np.array(indices, dtype=np.int64)
    if columns.size and columns.min() > 0:
        columns -= 1
    width = int(columns.max()) + 1 if columns.size else 0
    if features is not None and width > features:
        row = int(np.searchsorted(np.array(indptr), int(columns.argmax()), side="right")) - 1
        raise FileError(place(row), f"{features} features", f"index {max(indices)}")
    if (features or width) == 0:
        raise FileError(where, "at least one index:value", "none")
    with np.errstate(over="ignore"):
        values = np.array(data).astype(np.float32)
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(np.array(indptr), at, side="right")) - 1
        raise FileError(place(row), "finite float32 numbers", data[at])
    x = sp.csr_array((values, columns, np.array(indptr)), shape=(len(lines), features or width))
    if any("," in label for label in labels):
        sets = [_label_set(place(i), label) for i, label in enumerate(labels)]
        return x, from_label_sets(place, sets, classes)
    for i, label in enumerate(labels):
        if not _is_number(label):
            raise FileError(place(i), "a number as label", repr(label) if label else "none")
    return x, from_text(place, labels, classes)


def _pairs(where: str, tokens: list[str]) -> list[tuple[int, float]]:
    row = []
    for token in tokens:
        left, _, right = token.partition(":")
        # Python's own int() and float() read more than the format has: 1_0, and an int in other scripts.
        if not (left.isascii() and left.isdigit() and len(left) <= 18 and _is_number(right)):
            raise FileError(where, "index:value pairs", repr(token))
        row.append((int(left), float(right)))
    if any(a >= b for (a, _), (b, _) in pairwise(row)):
        row.sort(key=lambda pair: pair[0])
        twice = next((a for (a, _), (b, _) in pairwise(row) if a == b), None)
        if twice is not None:
            raise FileError(where, "each index once", f"{twice} twice")
    return row


def _label_set(where: str, text: str) -> list[int]:
    labels = text.split(",") if text else []
    if not all(label.isascii() and label.isdigit() and len(label) <= 18 for label in labels):
        raise FileError(where, "integer labels joined by commas", repr(text))
    return [int(label) for label in labels]
