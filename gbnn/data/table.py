"""A strict reader of csv and tsv: every error names the line."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from gbnn.data.targets import Target, from_text, is_number
from gbnn.errors import ArgumentError, FileError

__all__ = ["column_number", "read_csv"]

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
    r"""Read a table of numbers with one target column.

    Parameters
    ----------
    path : str or Path
        UTF-8 text; the first line may name the columns (it does if at least half of its feature fields are
        not numbers, or its target is the only one that is not).
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
    >>> from gbnn.data.table import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text("kind,weight\ncat,4.5\nant,0.25\n")
    ...     x, target = read_csv(path, target="kind")
    >>> x.tolist(), target.y, target.classes
    ([[4.5], [0.25]], array([1, 0]), ('ant', 'cat'))
    """
    where = str(path)
    try:
        # "utf-8-sig" drops the byte order mark that spreadsheets write.
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = _rows(where, csv.reader(file, delimiter=delimiter, strict=True))
            first = next(rows, None)
            if first is None:
                raise FileError(where, "rows of numbers", "an empty file")
            column, header = _layout(where, first, target, features)
            width = len(first[1]) - (column is not None)  # before the target is taken out of the row
            body = rows if header else chain([first], rows)
            values, fields, lines = _table(where, body, first, column)
    except UnicodeDecodeError as error:
        raise FileError(where, "UTF-8 text", error) from None
    except OSError as error:
        raise FileError(where, "a readable file", error) from None
    if not header and _is_name(fields, classes):
        del values[:width], fields[0], lines[0]
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


def _layout(where: str, first: Row, target: Any, features: int | None) -> tuple[Any, bool]:
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
            wanted += "" if all(map(is_number, names)) else f", or a name such as {names[0]!r}"
            raise ArgumentError("target", wanted, repr(target))
        column = number % width
    if column is not None and width == 1:
        raise FileError(where, "a feature column beside the target", "one column")
    others = [name for i, name in enumerate(names) if i != column]
    # An empty field is a missing number, and one word among numbers a mistake to report: neither is a header.
    words = sum(bool(name) and not is_number(name) for name in others)
    return column, 2 * words >= len(others)


def _is_name(fields: list[str], classes: Sequence[str] | None) -> bool:
    """Whether the first field of a target column is its name: the only one that is not a number."""
    if len(fields) < 2 or is_number(fields[0]) or fields[0] in (classes or ()):
        return False
    return all(map(is_number, fields[1:]))


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
            plain = "_" not in "".join(row)  # float reads 1_0 as 10
        except ValueError:
            plain = False
        if not plain:
            bad = next(field for field in row if not is_number(field))
            raise FileError(f"{where}, line {line}", "a number in each feature column", repr(bad))
        lines.append(line)
    return values, fields, lines
