"""Mini-batches of arrays, of sparse matrices, and of rows on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.data.checks import canonical_csr, check_values, real_array
from gbnn.data.csr_folder import MappedRows
from gbnn.data.gather import StoredRows
from gbnn.errors import ArgumentError, check_bool, check_int, generator
from gbnn.rows import SparseRows, is_sparse
from gbnn.weights import real_dtype

__all__ = ["Batches", "batches"]

Array = np.ndarray[Any, Any]

MAX_ENTRIES = 2**31
"""Most entries of one dense batch: beyond it the cause is a mistaken shape, and the machine would swap."""

WIDE = np.dtype(np.float64)  # no limit to targets: they are not converted


class Batches:
    """Pairs (x, y) of mini-batches; one `iter` is one epoch, in a fresh random order.

    Parameters
    ----------
    x : array_like or sparse, shape (rows, features)
        Samples, one a row: any real dtype and memory order, also a `numpy.memmap`. It is kept, not copied.
        Sparse is SciPy's, a `graphblas.Matrix`, `SparseRows`, or `MappedRows` of `open_csr`; other formats
        than CSR are converted to it once, and CSR whose rows are not sorted or have duplicates (which add up)
        is copied once: yours stays as it is.
    y : array_like or sparse, shape (rows,) or (rows, outputs), optional
        Targets. Those of a batch keep their dtype; if they are sparse, they are a SciPy CSR of the batch.
        Without `y` each pair ends in None.
    batch_size : int
        Rows in a batch; the last of an epoch may be smaller.
    seed : int or numpy.random.Generator, optional
        Where the orders come from; None is 0. A Generator is used as it is, and shared with the caller.
    shuffle : bool
        False keeps the order of the rows and draws nothing.
    drop_last : bool
        Leave out a last batch that is smaller than the others.
    dtype : dtype
        float32 or float64: what the batches of `x` are made of.
    sparse : bool, optional
        Whether the batches of `x` are `SparseRows`; None: where `x` is sparse. False makes rows dense, one
        batch at a time.

    Attributes
    ----------
    rows, features, batch_size : int
    dtype : numpy.dtype
    generator : numpy.random.Generator
        Its state is all that has to be saved for the next epoch to come out the same.

    Raises
    ------
    KindError
        On anything but real numbers, and on dtypes other than float32 and float64.
    ArgumentError
        On shapes that do not fit each other, no rows or no features, a batch size below 1 (or above `rows`
        with `drop_last`), sparse indices outside their shape, numbers too large for `dtype`, and batches of
        more than 2**31 entries as an array.
    NonFiniteError
        On NaN or infinity in `x` or `y`, naming the place.
    FileError
        From an epoch, if rows on disk are damaged (those of arrays are checked here).

    Notes
    -----
    A dense batch of `x` is a new array in Fortran order, shape (batch, features): each feature's values are
    contiguous, which is what the layers take without a copy. A sparse one costs time and memory by its
    entries, whatever the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.data import Batches
    >>> epoch = Batches(np.arange(10).reshape(5, 2), [0, 1, 0, 1, 0], batch_size=2, shuffle=False)
    >>> len(epoch)
    3
    >>> for x, y in epoch:
    ...     print(x.tolist(), y)
    [[0.0, 1.0], [2.0, 3.0]] [0 1]
    [[4.0, 5.0], [6.0, 7.0]] [0 1]
    [[8.0, 9.0]] [0]
    """

    def __init__(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 128,
        *,
        seed: int | np.random.Generator | None = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        dtype: Any = np.float32,
        sparse: bool | None = None,
    ) -> None:
        self.dtype = real_dtype("dtype", dtype)
        self._x = _samples(x, self.dtype)
        self.rows, self.features = (int(n) for n in self._x.shape)
        self._y = None if y is None else _targets(y, self.rows, check=not isinstance(self._x, MappedRows))
        self.batch_size = check_int("batch_size", batch_size, 1)
        self.sparse = not isinstance(self._x, np.ndarray) if sparse is None else check_bool("sparse", sparse)
        if not self.sparse and min(self.batch_size, self.rows) * self.features > MAX_ENTRIES:
            most = f"at most {MAX_ENTRIES} entries in a dense batch"
            raise ArgumentError("batch_size", most, f"{self.batch_size} rows of {self.features} features")
        if drop_last and self.batch_size > self.rows:
            raise ArgumentError("batch_size", f"at most {self.rows} rows with drop_last", self.batch_size)
        self.generator = generator("seed", 0 if seed is None else seed)
        self._shuffle = bool(shuffle)
        self._drop_last = bool(drop_last)

    def __len__(self) -> int:
        whole, rest = divmod(self.rows, self.batch_size)
        return whole if self._drop_last or rest == 0 else whole + 1

    def __iter__(self) -> Iterator[tuple[Array | SparseRows, Any]]:
        # Drawn here and not at the first `next`: the order of epochs is the order of the `iter` calls.
        order = self.generator.permutation(self.rows) if self._shuffle else None
        return self._epoch(order)

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self._x, np.ndarray) else "CSR"
        size = f"{self.rows} x {self.features} {kind}"
        return f"Batches({size}, batch_size={self.batch_size}, {len(self)} batches)"

    def _epoch(self, order: Array | None) -> Iterator[tuple[Array | SparseRows, Any]]:
        buffer = self._gather_buffer() if order is not None else None
        for k in range(len(self)):
            span = slice(k * self.batch_size, min((k + 1) * self.batch_size, self.rows))
            picked: Any = span if order is None else order[span]
            yield self._samples(picked, buffer), self._targets(picked)

    def _samples(self, picked: Any, buffer: Array | None) -> Array | SparseRows:
        if isinstance(self._x, np.ndarray):
            dense = self._dense(picked, buffer)
            return SparseRows.from_dense(dense) if self.sparse else dense
        rows = self._rows(picked)
        if self.sparse:
            return rows
        made: Array = sp.csr_array((rows.values, rows.columns, rows.starts), rows.shape).toarray(order="F")
        return made

    def _gather_buffer(self) -> Array | None:
        # np.take into memory that stays is several times faster than a new temporary for each batch, whose
        # pages the system hands out and takes back; but it copies the whole of an `x` that is not C-ordered.
        x = self._x
        if not isinstance(x, np.ndarray) or not (x.flags.c_contiguous and x.flags.aligned):
            return None
        return np.empty((min(self.batch_size, self.rows), self.features), dtype=x.dtype)

    def _dense(self, picked: Any, buffer: Array | None) -> Array:
        if buffer is None:
            rows = self._x[picked]
        else:
            rows = buffer[: len(picked)]
            np.take(self._x, picked, axis=0, out=rows, mode="clip")  # any other mode buffers once more
        # One strided copy transposes and converts.
        batch = np.empty((self.features, rows.shape[0]), dtype=self.dtype)
        batch[...] = rows.T
        return batch.T

    def _rows(self, picked: Any) -> SparseRows:
        rows: SparseRows = self._x.take(picked)
        if isinstance(self._x, MappedRows):
            check_values("x", rows.values, self.dtype)
        return rows.astype(self.dtype)

    def _targets(self, picked: Any) -> Any:
        if self._y is None:
            return None
        if isinstance(self._y, MappedRows):
            return self._y.take(picked).to_scipy()
        y = self._y[picked]
        if isinstance(self._x, MappedRows) and isinstance(y, np.ndarray):
            check_values("y", y, WIDE)
        return y


def batches(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    *,
    seed: int | np.random.Generator | None = 0,
    shuffle: bool = True,
    drop_last: bool = False,
    dtype: Any = np.float32,
    sparse: bool | None = None,
) -> Batches:
    """Return mini-batches of `x` and `y`; parameters, errors and order are those of `Batches`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.data import batches
    >>> for x, y in batches(sp.eye_array(3, format="csr"), [5, 6, 7], batch_size=2, seed=1):
    ...     print(x, y)
    SparseRows(2 x 3, nnz=2, float32) [5 6]
    SparseRows(1 x 3, nnz=1, float32) [7]
    """
    options: dict[str, Any] = {"shuffle": shuffle, "drop_last": drop_last, "dtype": dtype, "sparse": sparse}
    return Batches(x, y, batch_size, seed=seed, **options)


def _samples(x: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(x, MappedRows):
        return x
    sparse = is_sparse(x)
    samples: Any = canonical_csr("x", _scipy("x", x), dtype) if sparse else real_array("x", x)
    if samples.ndim != 2 or 0 in samples.shape:
        raise ArgumentError("x", "shape (rows, features), at least one of each", f"shape {samples.shape}")
    if not sparse:
        check_values("x", samples, dtype)
        return samples
    values = samples.data if samples.dtype in (np.float32, np.float64) else samples.data.astype(dtype)
    shape = (int(samples.shape[0]), int(samples.shape[1]))
    return StoredRows(samples.indptr.astype(np.int64, copy=False), samples.indices, values, shape)


def _targets(y: Any, rows: int, *, check: bool) -> Any:
    mapped = isinstance(y, MappedRows)
    sparse = mapped or is_sparse(y)
    targets = y if mapped else canonical_csr("y", _scipy("y", y), WIDE) if sparse else real_array("y", y)
    if len(targets.shape) not in (1, 2) or targets.shape[0] != rows:
        wanted = f"shape ({rows},) or ({rows}, outputs), a row for each of x"
        raise ArgumentError("y", wanted, f"shape {targets.shape}")
    if check and not sparse:  # beside rows on disk it may be there, too: its numbers are checked with theirs
        check_values("y", targets, WIDE)
    return targets


def _scipy(where: str, matrix: Any) -> Any:
    return matrix if sp.issparse(matrix) else SparseRows.of(matrix, where=where).to_scipy()
