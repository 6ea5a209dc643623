"""The svmlight format read plainly, a line at a time: what the fast reader of gbnn is compared with."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.targets import Place, Target, _positions, from_text, is_number
from gbnn.errors import FileError

__all__ = ["read_svmlight"]

LARGEST = 2**60 + 1


def read_svmlight(
    path: str | Path,
    *,
    classes: Sequence[str] | None = None,
    features: int | None = None,
) -> tuple[Any, Target]:
    """Return the matrix and the target, or raise FileError."""
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
                keys, values = _pairs(f"{where}, line {line}", tokens)
                indices.extend(keys)
                data.extend(values)
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

    x = _matrix(where, place, (data, indices, indptr), features)
    if any("," in label for label in labels):
        sets = [_label_set(place(i), label) for i, label in enumerate(labels)]
        return x, from_label_sets(place, sets, classes)
    for i, label in enumerate(labels):
        if not is_number(label):
            raise FileError(place(i), "a number as label", repr(label) if label else "none")
    return x, from_text(place, labels, classes)


def _matrix(where: str, place: Place, parts: tuple[Any, Any, Any], features: int | None) -> Any:
    """Build the CSR matrix from the entries, their indices and the row pointers, as the file has them."""
    values, columns, starts = (np.array(part) for part in parts)

    def place_of(entry: int) -> str:
        return place(int(np.searchsorted(starts, entry, side="right")) - 1)

    shift = int(columns.size > 0 and columns.min() > 0)
    width = int(columns.max()) + 1 - shift if columns.size else 0
    if features is not None and width > features:
        worst = int(columns.argmax())
        raise FileError(place_of(worst), f"{features} features", f"index {columns[worst]}")
    if (features or width) == 0:
        raise FileError(where, "at least one index:value", "none")
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is reported as such
        narrow = values.astype(np.float32)
    finite = np.isfinite(narrow)
    if not finite.all():
        entry = int(np.argmin(finite))
        raise FileError(place_of(entry), "finite float32 numbers", values[entry])
    return sp.csr_array((narrow, columns - shift, starts), shape=(starts.size - 1, features or width))


def _pairs(where: str, tokens: list[str]) -> tuple[list[int], list[float]]:
    """Return the indices, ascending, and the values of a line."""
    try:
        parts = [token.split(":") for token in tokens]
        keys, values = [int(left) for left, _ in parts], [float(right) for _, right in parts]
        sound = min(keys, default=0) >= 0 and max(keys, default=0) < LARGEST
    except ValueError:
        sound = False
    # Python reads more than the format has: 1_0, and digits of other scripts.
    text = "".join(tokens)
    if not sound or "_" in text or not text.isascii():
        raise FileError(where, "index:value pairs", repr(next(filter(_is_wrong, tokens), text)))
    if any(a >= b for a, b in pairwise(keys)):
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys, values = [keys[k] for k in order], [values[k] for k in order]
        twice = next((a for a, b in pairwise(keys) if a == b), None)
        if twice is not None:
            raise FileError(where, "each index once", f"{twice} twice")
    return keys, values


def _is_wrong(token: str) -> bool:
    left, _, right = token.partition(":")
    short = left.isascii() and left.isdigit() and len(left) <= 19 and int(left) < LARGEST
    return not (short and right.isascii() and is_number(right))


def _label_set(where: str, text: str) -> list[int]:
    labels = text.split(",") if text else []
    if not all(label.isascii() and label.isdigit() and len(label) <= 18 for label in labels):
        raise FileError(where, "integer labels joined by commas", repr(text))
    return [int(label) for label in labels]


def from_label_sets(place: Place, sets: list[list[int]], classes: Sequence[str] | None = None) -> Target:
    """Turn the labels of each row, any number of integers, into a CSR target."""
    counts = [len(labels) for labels in sets]
    rows = np.repeat(np.arange(len(sets)), counts)
    found, columns = np.unique(np.array([k for s in sets for k in s], dtype=np.int64), return_inverse=True)
    names = tuple(str(value) for value in found)
    if classes is not None:
        places = np.array(_positions(lambda i: place(int(rows[i])), names, classes, columns), dtype=np.int64)
        names, columns = tuple(classes), places[columns]
    if not names:
        raise FileError(place(0), "labels in at least one row", "none")
    ones = np.ones(columns.size, dtype=np.float32)
    y = sp.csr_array((ones, (rows, columns)), shape=(len(sets), len(names)))
    if y.nnz != columns.size:
        row = int(np.argmax(np.diff(y.indptr) != counts))
        raise FileError(place(row), "each label once", sorted(sets[row]))
    return Target(y, names, "binary_cross_entropy")
