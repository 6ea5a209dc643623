"""A strict reader of the svmlight format: every error names the line."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.targets import Place, Target, from_label_sets, from_text, is_number
from gbnn.errors import FileError

__all__ = ["read_svmlight"]

LARGEST = 10**18  # one more than the largest index; far from the end of int64


def read_svmlight(
    path: str | Path,
    *,
    classes: Sequence[str] | None = None,
    features: int | None = None,
) -> tuple[Any, Target]:
    r"""Read ``label index:value ...`` lines, the format of SVMlight and LIBSVM.

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
    >>> from gbnn.data.svmlight import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1 # a comment\n")
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
    short = left.isascii() and left.isdigit() and len(left) <= 18
    return not (short and right.isascii() and is_number(right))


def _label_set(where: str, text: str) -> list[int]:
    labels = text.split(",") if text else []
    if not all(label.isascii() and label.isdigit() and len(label) <= 18 for label in labels):
        raise FileError(where, "integer labels joined by commas", repr(text))
    return [int(label) for label in labels]
