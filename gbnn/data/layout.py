"""What a text file of sparse rows holds: found by a first pass, and what each row is under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gbnn.data.targets import is_number
from gbnn.data.text_blocks import Block, Header
from gbnn.data.text_kernel import INTEGER, LIST, NONE, SPELLED, TEXT
from gbnn.edges import MAX_FEATURES
from gbnn.errors import ArgumentError, FileError
from gbnn.rows import SparseRows

__all__ = ["NOTHING", "Known", "Layout", "Reader", "Survey"]

Array = np.ndarray[Any, Any]


class Layout(NamedTuple):
    """What a text file of sparse rows holds.

    Attributes
    ----------
    rows, features : int
    outputs : int
        Classes, labels, or 1 for numbers to predict.
    zero_based : bool
        Whether its indices count from 0.
    loss : str
        The loss that suits: "cross_entropy", "binary_cross_entropy" or "mse".
    classes : tuple of str
        Names of the classes or labels, if they have any.
    """

    rows: int
    features: int
    outputs: int
    zero_based: bool
    loss: str
    classes: tuple[str, ...] = ()


class Known(NamedTuple):
    """What is known of a file beforehand; None is found in it.

    Attributes
    ----------
    features : int, optional
    classes : sequence of str, optional
        Empty: labels are numbers.
    zero_based : bool, optional
    """

    features: int | None = None
    classes: Sequence[str] | None = None
    zero_based: bool | None = None


NOTHING = Known()


class Survey:
    """The layout of a file, from its rows one block after the other; memory grows with the classes only.

    Parameters
    ----------
    where : str
        The file.
    header : Header, optional
        Its first line, if it is one of the extreme-classification format.
    known : Known
    targets : bool
        False: the labels may be anything, and the layout has no loss.
    """

    def __init__(
        self,
        where: str,
        header: Header | None = None,
        known: Known = NOTHING,
        *,
        targets: bool = True,
    ) -> None:
        self.where, self.header, self.targets = where, header, targets
        self.features, self.zero_based = known.features, known.zero_based
        self.classes = None if known.classes is None else tuple(known.classes)
        self.rows = 0
        self._low, self._high = MAX_FEATURES, -1
        self._lowest = self._highest = 0  # the lines of the smallest and the largest index
        self._labels = np.empty(0, dtype=np.int64)
        self._many = False  # whether rows have several labels
        self._first = dict[int, int]()  # kind -> the line where it comes first

    def add(self, block: Block) -> None:
        """Take in some rows."""
        self.rows += block.lines.size
        if block.columns.size:
            at = int(block.columns.argmin())
            if block.columns[at] < self._low:
                self._low, self._lowest = int(block.columns[at]), int(block.lines[block.row_of(at)])
            at = int(block.columns.argmax())
            if block.columns[at] > self._high:
                self._high, self._highest = int(block.columns[at]), int(block.lines[block.row_of(at)])
        kinds, rows = np.unique(block.kinds, return_index=True)
        for kind, row in zip(kinds.tolist(), rows.tolist(), strict=True):
            self._first.setdefault(kind, int(block.lines[row]))
        self._many = self._many or LIST in self._first or any("," in text for text in block.texts.values())
        if self.classes is None and self.header is None and (self._many or TEXT not in self._first):
            self._labels = np.unique(np.concatenate([self._labels, np.unique(block.labels)]))

    def layout(self) -> Layout:
        """Return the layout of the rows so far, or raise what no layout allows."""
        if self.header is not None:
            return _of_header(
                self.where, self.header, self.features, self.classes, self.zero_based, self.rows
            )
        if not self.rows:
            raise FileError(self.where, "lines of label index:value ...", "none")
        many = self._many
        base = self.zero_based
        if base is None:
            base = self._low == 0
        if not base and self._low == 0:
            wanted = "indices from 1, as zero_based=False says"
            raise FileError(f"{self.where}, line {self._lowest}", wanted, "index 0")
        width = self._high + 1 - (not base) if self._high >= 0 else 0
        if width > (MAX_FEATURES if self.features is None else self.features):
            wanted = f"{self.features or 'at most 2**60'} features"
            raise FileError(f"{self.where}, line {self._highest}", wanted, f"index {self._high}")
        features = self.features or width
        if features == 0:
            raise FileError(self.where, "at least one index:value", "none")
        if not self.targets:
            return Layout(self.rows, features, 0, base, "")
        if not many and NONE in self._first:
            raise FileError(f"{self.where}, line {self._first[NONE]}", "a number as label", "none")
        numbers = not many and (self.classes == () or (self.classes is None and TEXT in self._first))
        if numbers:
            return Layout(self.rows, features, 1, base, "mse")
        classes = tuple(map(str, self._labels.tolist())) if self.classes is None else self.classes
        loss = "binary_cross_entropy" if many else "cross_entropy"
        return Layout(self.rows, features, len(classes), base, loss, classes)


def _of_header(
    where: str, header: Header, features: int | None, classes: Any, zero_based: bool | None, rows: int
) -> Layout:
    sizes = f"{header.rows} rows, {header.features} features and {header.labels} labels"
    if 0 in header or max(header) > MAX_FEATURES:
        raise FileError(f"{where}, line 1", "sizes from 1 to 2**60", sizes)
    if features is not None and features != header.features:
        raise FileError(f"{where}, line 1", f"{features} features", header.features)
    if classes and len(classes) != header.labels:
        raise FileError(f"{where}, line 1", f"{len(classes)} labels", header.labels)
    if zero_based is False:
        raise ArgumentError("zero_based", "None or True: a file with a header counts from 0", zero_based)
    return Layout(
        header.rows, header.features, header.labels, True, "binary_cross_entropy", tuple(classes or ())
    )


class Reader:
    """Rows of a file, block by block, as samples and targets under a layout.

    Parameters
    ----------
    where : str
        The file.
    layout : Layout
    header : bool
        Whether the layout is that of its header: labels are numbers of columns then.
    targets : bool
        False: the labels may be anything, and there are no targets.
    """

    def __init__(self, where: str, layout: Layout, *, header: bool, targets: bool = True) -> None:
        self.where, self.layout = where, layout
        self.header, self.targets = header, targets
        self.rows = 0
        self._last = 1
        self._spelled = {name: k for k, name in enumerate(layout.classes)}
        pairs = [(int(name), k) for name, k in self._spelled.items() if _is_integer(name)]
        pairs.sort()
        self._integers = np.array([integer for integer, _ in pairs], dtype=np.int64)
        self._positions = np.array([position for _, position in pairs], dtype=np.int64)

    def read(self, block: Block) -> tuple[SparseRows, Any]:
        """Return the samples of a block, float32, and their targets, or raise naming the line."""
        self.rows += block.lines.size
        self._last = int(block.lines[-1])
        if self.rows > self.layout.rows:
            at = block.lines[block.lines.size - (self.rows - self.layout.rows)]
            raise FileError(f"{self.where}, line {at}", f"{self.layout.rows} rows{self._said()}", "another")
        x = self._samples(block)
        if not self.targets:
            return x, None
        if self.layout.loss == "binary_cross_entropy":
            return x, self._label_sets(block)
        return x, self._numbers(block) if self.layout.loss == "mse" else self._classes(block)

    def end(self) -> None:
        """Raise if there were fewer rows than there should be."""
        if self.rows != self.layout.rows:
            place = f"{self.where}, line {self._last}"
            raise FileError(place, f"{self.layout.rows} rows{self._said()}", f"{self.rows} up to its end")

    def _said(self) -> str:
        return ", as its header says" if self.header else ", as a first pass found"

    def _samples(self, block: Block) -> SparseRows:
        shift = int(not self.layout.zero_based)
        columns = block.columns - shift
        if columns.size:
            for at, wrong in (
                (int(columns.argmin()), int(columns.min()) < 0),
                (int(columns.argmax()), False),
            ):
                if wrong or columns[at] >= self.layout.features:
                    place = f"{self.where}, line {block.lines[block.row_of(at)]}"
                    span = f"{shift} to {self.layout.features - 1 + shift}"
                    wanted = f"indices from {span} ({self.layout.features} features, from {shift} on)"
                    raise FileError(place, wanted, f"index {block.columns[at]}")
        return SparseRows(block.starts, columns, block.values, (block.lines.size, self.layout.features))

    def _place(self, block: Block, row: Any) -> str:
        return f"{self.where}, line {block.lines[row]}"

    def _classes(self, block: Block) -> Array:
        for row in np.flatnonzero((block.kinds == NONE) | (block.kinds == LIST)).tolist():
            came = block.text(row)
            raise FileError(self._place(block, row), "a number as label", repr(came) if came else "none")
        result = np.full(block.lines.size, -1, dtype=np.int64)
        plain = block.kinds == INTEGER
        result[plain] = self._lookup(block.labels[block.label_starts[:-1][plain]])
        for row, text in block.texts.items():
            if not is_number(text):
                raise FileError(self._place(block, row), "a number as label", repr(text))
            known = self._spelled.get(text)
            if known is None and block.kinds[row] == SPELLED:
                known = self._spelled.get(str(int(text)))
            result[row] = -1 if known is None else known
        for row in np.flatnonzero(result < 0).tolist():
            wanted = f"one of the {len(self._spelled)} classes"
            raise FileError(self._place(block, row), wanted, repr(block.text(row)))
        return result

    def _lookup(self, labels: Array) -> Array:
        """Return the positions of integers among the classes, -1 for none."""
        if not self._integers.size:
            return np.full(labels.size, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._integers, labels), self._integers.size - 1)
        found: Array = np.where(self._integers[at] == labels, self._positions[at], -1)
        return found

    def _numbers(self, block: Block) -> Array:
        exact = np.empty(block.lines.size)
        plain = block.kinds == INTEGER
        exact[plain] = block.labels[block.label_starts[:-1][plain]]
        for row in np.flatnonzero(~plain).tolist():
            text = block.text(row)
            if not is_number(text):
                raise FileError(self._place(block, row), "a number as label", repr(text) if text else "none")
            exact[row] = float(text)
        with np.errstate(over="ignore"):  # what overflows becomes infinite and is reported as such
            numbers: Array = exact.astype(np.float32)
        for row in np.flatnonzero(~np.isfinite(numbers)).tolist():
            raise FileError(self._place(block, row), "a finite float32 as target", exact[row])
        return numbers

    def _label_sets(self, block: Block) -> Any:
        for row, text in block.texts.items():
            if not (block.kinds[row] == SPELLED and text.isdigit()):
                raise FileError(self._place(block, row), "integer labels joined by commas", repr(text))
        wrong = block.labels < 0
        columns = block.labels
        wanted = "integer labels joined by commas"
        if self.header:
            if not wrong.any():
                wrong = columns >= self.layout.outputs
                wanted = f"labels from 0 to {self.layout.outputs - 1}"
        elif not wrong.any():
            columns = self._lookup(block.labels)
            wrong = columns < 0
            wanted = f"one of the {len(self._spelled)} classes"
        for at in np.flatnonzero(wrong):
            place = self._place(block, block.row_of_label(int(at)))
            raise FileError(place, wanted, repr(str(block.labels[at])))
        ones = np.ones(columns.size, dtype=np.float32)
        shape = (block.lines.size, self.layout.outputs)
        y = sp.csr_array((ones, columns.copy(), block.label_starts.copy()), shape=shape)
        y.sum_duplicates()  # in place
        if y.nnz != columns.size:
            row = int(np.argmax(np.diff(y.indptr) != np.diff(block.label_starts)))
            labels = sorted(block.labels[block.label_starts[row] : block.label_starts[row + 1]].tolist())
            raise FileError(self._place(block, row), "each label once", labels)
        return y


def _is_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return plain and name == str(int(name))
