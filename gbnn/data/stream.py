"""`Stream`: mini-batches read from a text file as they are needed, whatever its size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.gather import StoredRows
from gbnn.data.layout import Known, Layout, Reader, Survey
from gbnn.data.text_blocks import blocks, read_header
from gbnn.errors import ArgumentError, KindError, check_bool, check_int, generator
from gbnn.rows import SparseRows
from gbnn.weights import real_dtype

__all__ = ["Stream"]

Array = np.ndarray[Any, Any]
Pair = tuple[SparseRows, Any]


class Stream:
    r"""Pairs (x, y) of mini-batches from a text file of sparse rows; one `iter` reads it once, from disk.

    Memory holds a block of the file, a batch, and the rows that are shuffled: never the file.

    Parameters
    ----------
    path : str or Path
        svmlight/LIBSVM, or the Extreme Classification Repository's format, as `gbnn.data.read` takes them,
        plain or compressed by gzip.
    batch_size : int
        Rows in a batch; the last of an epoch may be smaller.
    buffer : int
        Rows among which the next ones are drawn at random, at least `batch_size`; 0 keeps their order. A file
        whose rows are sorted by class wants a buffer of several classes, or `shuf` before.
    seed : int or numpy.random.Generator
        Where the order comes from. A Generator is used as it is, and shared with the caller.
    features : int, optional
        How many there are; by default as many as the largest index says.
    classes : sequence of str, optional
        As in `gbnn.data.read`; those of the training file for a test file.
    zero_based : bool, optional
        Whether indices count from 0. None: they do if there is a 0 in the file, else from 1. For a test file,
        give the training file's: `train.layout.zero_based`.
    targets : bool
        False: the labels may be anything, and each pair ends in None.
    layout : Layout, optional
        What is in the file, if that is known: the first pass is left out. It stands for `features`, `classes`
        and `zero_based`.
    dtype : dtype
        float32 or float64: what the batches of `x` are made of.

    Attributes
    ----------
    layout : Layout
    rows, features, batch_size : int
    dtype : numpy.dtype
    generator : numpy.random.Generator

    Raises
    ------
    FileError
        Naming the line, as `gbnn.data.read` does: from the first pass, before anything is trained on. A file
        with a header needs none, and one with a `layout` has none: then an epoch raises it as it comes there.
    ArgumentError, KindError
        On options that make no sense.

    Notes
    -----
    x is a `SparseRows`, y as `gbnn.data.targets.Target` describes it (several labels a row: SciPy CSR). With
    a buffer of B rows, B rows are read and put in random order; half of them are given out, B/2 more are
    read, and so on: a row can move any distance, with falling probability.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data import Stream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.svm")
    ...     _ = path.write_text("1 1:0.5 3:2\n0 2:1\n1 3:1\n")
    ...     stream = Stream(path, batch_size=2)
    ...     for x, y in stream:
    ...         print(x, y)
    SparseRows(2 x 3, nnz=3, float32) [1 0]
    SparseRows(1 x 3, nnz=1, float32) [1]
    >>> stream
    Stream(a.svm: 3 x 3, batch_size=2, 2 batches)
    """

    def __init__(
        self,
        path: str | Path,
        batch_size: int = 128,
        *,
        buffer: int = 0,
        seed: int | np.random.Generator = 0,
        features: int | None = None,
        classes: Sequence[str] | None = None,
        zero_based: bool | None = None,
        targets: bool = True,
        layout: Layout | None = None,
        dtype: Any = np.float32,
    ) -> None:
        if not isinstance(path, (str, Path)):
            raise KindError("path", "a string or Path", type(path).__name__)
        self.path = path
        self.batch_size = check_int("batch_size", batch_size, 1)
        self._buffer = check_int("buffer", buffer, 0)
        if 0 < self._buffer < self.batch_size:
            raise ArgumentError("buffer", f"0, or at least batch_size={self.batch_size} rows", buffer)
        self.generator = generator("seed", seed)
        self.dtype = real_dtype("dtype", dtype)
        self._targets = check_bool("targets", targets)
        if features is not None:
            check_int("features", features, 1)
        if zero_based is not None:
            check_bool("zero_based", zero_based)
        self._header = read_header(path)
        if layout is None:
            known = Known(features, classes, zero_based)
            survey = Survey(str(path), self._header, known, targets=self._targets)
            if self._header is None:
                for block in blocks(path):
                    survey.add(block)
            layout = survey.layout()
            if self._header is None:
                for _ in self._read(layout):  # what only the layout can tell is wrong
                    pass
        elif not isinstance(layout, Layout):
            raise KindError("layout", "a gbnn.data Layout", type(layout).__name__)
        elif not (features is None and classes is None and zero_based is None):
            raise ArgumentError("layout", "no features, classes or zero_based beside it", "both")
        self.layout = layout

    @property
    def rows(self) -> int:
        """Rows in an epoch."""
        return self.layout.rows

    @property
    def features(self) -> int:
        """Columns of x."""
        return self.layout.features

    def __len__(self) -> int:
        return -(-self.rows // self.batch_size)

    def __repr__(self) -> str:
        size = f"{self.rows} x {self.features}"
        return f"Stream({Path(self.path).name}: {size}, batch_size={self.batch_size}, {len(self)} batches)"

    def __iter__(self) -> Iterator[Pair]:
        # Drawn here and not at the first `next`: the order of epochs is the order of the `iter` calls.
        rng = np.random.default_rng(self.generator.integers(2**63)) if self._buffer else None
        return self._epoch(rng)

    def _epoch(self, rng: np.random.Generator | None) -> Iterator[Pair]:
        taker = _Taker(self._read(self.layout))
        if rng is None:
            while (batch := taker.take(self.batch_size)) is not None:
                yield self._cast(batch)
            return
        size, pool = self.batch_size, taker.take(self._buffer)
        given = max(1, self._buffer // (2 * size)) * size
        while pool is not None:
            order = rng.permutation(len(pool[0]))
            more = taker.take(given) if len(order) == self._buffer else None
            out = order if more is None else order[:given]
            for begin in range(0, len(out), size):
                yield self._cast(_picked(pool, out[begin : begin + size]))
            if more is None:
                return
            kept = order[given:]
            pool = _stacked([_picked(pool, kept), more]) if kept.size else more

    def _read(self, layout: Layout) -> Iterator[Pair]:
        header = self._header is not None
        reader = Reader(str(self.path), layout, header=header, targets=self._targets)
        for block in blocks(self.path, header=header):
            yield reader.read(block)
        reader.end()

    def _cast(self, pair: Pair) -> Pair:
        return pair[0].astype(self.dtype), pair[1]


class _Taker:
    """Rows in parts of any size, given out in parts of the size that is asked for."""

    def __init__(self, parts: Iterator[Pair]) -> None:
        self._parts = parts
        self._part: Pair | None = None
        self._given = 0  # rows of the part that are given out

    def take(self, rows: int) -> Pair | None:
        """Return so many rows, fewer at the end, None after it."""
        taken, missing = list[Pair](), rows
        while missing:
            if self._part is None:
                self._part, self._given = next(self._parts, None), 0
            if self._part is None:
                break
            first, last = self._given, min(self._given + missing, len(self._part[0]))
            taken.append(_between(self._part, first, last))
            missing -= last - first
            self._given = last
            if last == len(self._part[0]):
                self._part = None
        return _stacked(taken) if taken else None


def _between(pair: Pair, first: int, last: int) -> Pair:
    x, y = pair
    starts = x.starts[first : last + 1]
    entries = slice(starts[0], starts[-1])
    shape = (last - first, x.shape[1])
    rows = SparseRows(starts - starts[0], x.columns[entries], x.values[entries], shape)
    return rows, None if y is None else y[first:last]


def _picked(pair: Pair, rows: Array) -> Pair:
    x, y = pair
    kept = StoredRows(x.starts, x.columns, x.values, x.shape)
    return kept.take(rows), None if y is None else y[rows]


def _stacked(pairs: list[Pair]) -> Pair:
    if len(pairs) == 1:
        return pairs[0]
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    sizes = np.concatenate([np.diff(x.starts) for x in xs])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate([x.columns for x in xs])
    values = np.concatenate([x.values for x in xs])
    x = SparseRows(starts, columns, values, (sizes.size, xs[0].shape[1]))
    if ys[0] is None:
        return x, None
    return x, sp.vstack(ys, format="csr") if sp.issparse(ys[0]) else np.concatenate(ys)
