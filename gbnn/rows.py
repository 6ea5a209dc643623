"""`SparseRows`: a batch of sparse activations, stored by row."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
import scipy.sparse as sp
from graphblas.core.matrix import TransposedMatrix

from gbnn.convert import real_dtype
from gbnn.edges import MAX_FEATURES
from gbnn.errors import ArgumentError, KindError, check_int, check_real

__all__ = ["SparseRows", "is_sparse", "stored"]

Array = np.ndarray[Any, Any]


class SparseRows:
    """A batch of sparse activations, shape (batch, features): only active entries are stored, row by row.

    What a layer gets and gives where activations are sparse. It is made of a `graphblas.Matrix` or a SciPy
    matrix by `SparseRows.of`, and is turned back by `to_graphblas` and `to_scipy`. An absent entry is the
    identity of ⊕: 0 in plus_times.

    Parameters
    ----------
    starts : ndarray of int64, shape (batch + 1,)
        Row b holds the entries `starts[b]` up to `starts[b + 1]`.
    columns : ndarray of int64, shape (nnz,)
        Ascending in each row, no column twice. Trusted here: `of` checks and sorts.
    values : ndarray of float32 or float64, shape (nnz,)
        A stored zero is an active entry like any other.
    shape : (int, int)
        batch and features; up to 2**60 features, for there is nothing of that size.

    Notes
    -----
    The arrays are not to be changed: rows of the same pattern share them (`with_values`).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gbnn.rows import SparseRows
    >>> x = SparseRows.of(sp.csr_array(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])))
    >>> x
    SparseRows(2 x 3, nnz=3, float64)
    >>> x.starts, x.columns, x.values
    (array([0, 1, 3]), array([1, 0, 2]), array([2., 1., 3.]))
    """

    __slots__ = ("columns", "shape", "starts", "values")

    def __init__(self, starts: Array, columns: Array, values: Array, shape: tuple[int, int]) -> None:
        self.starts, self.columns, self.values, self.shape = starts, columns, values, shape

    # -- From and to other forms ---------------------------------------------------------------------------

    @classmethod
    def of(cls, matrix: Any, *, dtype: Any = None, where: str = "matrix") -> SparseRows:
        """Make it of a `graphblas.Matrix` (or its ``.T``), a SciPy sparse matrix, or rows already.

        Parameters
        ----------
        matrix : graphblas.Matrix, SciPy sparse matrix or array, or SparseRows, shape (batch, features)
            Sorted, and duplicates of SciPy's added up. Stored zeros stay.
        dtype : dtype, optional
            float32 or float64; None keeps these and turns other real dtypes into float32.
        where : str
            Named in errors.

        Raises
        ------
        ArgumentError, KindError
            If it is none of these, has no rows, indices outside its shape, or values that are no numbers.

        Examples
        --------
        >>> import graphblas as gb
        >>> from gbnn.rows import SparseRows
        >>> SparseRows.of(gb.Matrix.from_coo([0], [2**59], [1.5], nrows=1, ncols=2**60))
        SparseRows(1 x 1152921504606846976, nnz=1, float64)
        """
        if isinstance(matrix, SparseRows):
            made = matrix
        elif isinstance(matrix, (gb.Matrix, TransposedMatrix)):
            made = _of_graphblas(cls, matrix, where)
        elif sp.issparse(matrix):
            made = _of_scipy(cls, matrix, where)
        else:
            raise KindError(where, "a graphblas.Matrix or a SciPy sparse matrix", type(matrix).__name__)
        check_int(f"{where}, rows", made.shape[0], 1)
        check_int(f"{where}, features", made.shape[1], 1, MAX_FEATURES)
        if dtype is None:
            dtype = made.dtype if made.dtype in (np.float32, np.float64) else np.float32
        return made.astype(dtype)

    @classmethod
    def from_dense(cls, array: Any) -> SparseRows:
        """Make it of the entries of an array, shape (batch, features), that are not 0 (NaN is not).

        Examples
        --------
        >>> from gbnn.rows import SparseRows
        >>> SparseRows.from_dense([[0.0, 5.0], [0.0, 0.0]]).columns
        array([1])
        """
        dense = check_real("array", array)
        if dense.ndim != 2 or 0 in dense.shape:
            raise ArgumentError("array", "shape (batch, features), at least one of each", dense.shape)
        if dense.dtype not in (np.float32, np.float64):
            dense = dense.astype(np.float32)
        rows, columns = np.nonzero(dense)
        starts = np.searchsorted(rows, np.arange(dense.shape[0] + 1))
        return cls(starts.astype(np.int64), columns.astype(np.int64), dense[rows, columns], dense.shape)

    def to_dense(self) -> Array:
        """Return an array of shape (batch, features), Fortran order, 0 where there is no entry.

        Raises ArgumentError beyond 2**31 entries.
        """
        batch, features = self.shape
        if batch * features > 2**31:
            raise ArgumentError("to_dense", "at most 2**31 entries", f"{batch} x {features}")
        dense = np.zeros((batch, features), dtype=self.values.dtype, order="F")
        dense[self.rows, self.columns] = self.values
        return dense

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.csr_array` of its own memory."""
        parts = (self.values.copy(), self.columns.copy(), self.starts.copy())
        return sp.csr_array(parts, shape=self.shape)

    def to_graphblas(self) -> gb.Matrix:
        """Return a `graphblas.Matrix` by row, of its own memory.

        Examples
        --------
        >>> from gbnn.rows import SparseRows
        >>> SparseRows.from_dense([[0.0, 5.0]]).to_graphblas().to_coo()
        (array([0], dtype=uint64), array([1], dtype=uint64), array([5.]))
        """
        return gb.Matrix.ss.import_csr(
            nrows=self.shape[0],
            ncols=self.shape[1],
            indptr=self.starts,
            col_indices=self.columns,
            values=self.values,
            sorted_cols=True,
        )

    # -- What it is ------------------------------------------------------------------------------------------

    @property
    def nnz(self) -> int:
        """Number of active entries."""
        return int(self.columns.size)

    @property
    def density(self) -> float:
        """Active entries as a share of all."""
        return self.nnz / (self.shape[0] * self.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        kind: np.dtype[Any] = self.values.dtype
        return kind

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.starts.nbytes + self.columns.nbytes + self.values.nbytes

    @property
    def rows(self) -> Array:
        """The row of each entry, int64, shape (nnz,); made anew at each call."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"SparseRows({self.shape[0]} x {self.shape[1]}, nnz={self.nnz}, {self.dtype})"

    # -- Others made of it -----------------------------------------------------------------------------------

    def with_values(self, values: Array) -> SparseRows:
        """Return the same pattern, shared, with other values, shape (nnz,)."""
        return SparseRows(self.starts, self.columns, values, self.shape)

    def astype(self, dtype: Any) -> SparseRows:
        """Return it with values of this dtype, float32 or float64: itself, where they are."""
        kind = real_dtype("dtype", dtype)
        if kind == self.values.dtype:
            return self
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and shows
            return self.with_values(self.values.astype(kind))

    def where(self, keep: Array) -> SparseRows:
        """Return the entries for which `keep`, bool of shape (nnz,), is true.

        Examples
        --------
        >>> from gbnn.rows import SparseRows
        >>> x = SparseRows.from_dense([[1.0, 5.0], [3.0, 0.0]])
        >>> x.where(x.values > 2).to_dense()
        array([[0., 5.],
               [3., 0.]])
        """
        at = np.flatnonzero(keep)
        starts = np.searchsorted(at, self.starts)
        return SparseRows(starts, self.columns[at], self.values[at], self.shape)

    def take(self, rows: Any) -> SparseRows:
        """Return these rows, a slice or an array of row numbers, in the order given.

        Raises ArgumentError where one is not there.

        Examples
        --------
        >>> from gbnn.rows import SparseRows
        >>> SparseRows.from_dense([[1.0, 5.0], [3.0, 0.0]]).take([1, 0]).to_dense()
        array([[3., 0.],
               [1., 5.]])
        """
        try:
            picked = np.arange(self.shape[0])[rows]
        except (IndexError, TypeError, ValueError):
            picked = np.empty(())
        if picked.ndim != 1:
            raise ArgumentError("rows", f"a slice or numbers of {self.shape[0]} rows", repr(rows))
        sizes = np.diff(self.starts)[picked]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(self.starts[:-1][picked] - starts[:-1], sizes) + np.arange(starts[-1])
        return SparseRows(starts, self.columns[at], self.values[at], (len(picked), self.shape[1]))

    def same_pattern(self, other: SparseRows) -> bool:
        """Whether the same entries are active."""
        if self.columns is other.columns and self.starts is other.starts:
            return True
        same = self.shape == other.shape and np.array_equal(self.starts, other.starts)
        return same and np.array_equal(self.columns, other.columns)

    def onto(self, pattern: SparseRows) -> Array:
        """Return the values at the entries of another pattern of the same shape, 0 where there is none here.

        Returns
        -------
        ndarray, shape (pattern.nnz,)

        Examples
        --------
        >>> from gbnn.rows import SparseRows
        >>> a, b = SparseRows.from_dense([[1.0, 5.0, 0.0]]), SparseRows.from_dense([[0.0, 1.0, 1.0]])
        >>> a.onto(b)
        array([5., 0.])
        """
        if self.same_pattern(pattern):
            return self.values
        if self.shape != pattern.shape:
            raise ArgumentError("rows", f"shape {pattern.shape}", self.shape)
        # Both are sorted by (row, column): one sort of their columns' ranks makes keys that fit an int64.
        every, ranks = np.unique(np.concatenate([self.columns, pattern.columns]), return_inverse=True)
        own = self.rows * max(every.size, 1) + ranks[: self.nnz]
        theirs = pattern.rows * max(every.size, 1) + ranks[self.nnz :]
        result = np.zeros(pattern.nnz, dtype=self.values.dtype)
        if own.size:
            at = np.minimum(np.searchsorted(own, theirs), own.size - 1)
            found = own[at] == theirs
            result[found] = self.values[at[found]]
        return result


def is_sparse(x: Any) -> bool:
    """Whether this is sparse: `SparseRows`, a `graphblas.Matrix`, or a SciPy sparse matrix."""
    return isinstance(x, (SparseRows, gb.Matrix, TransposedMatrix)) or bool(sp.issparse(x))


def stored(x: Any) -> Array:
    """Return the numbers of a batch that are stored: the active entries of `SparseRows`, or the array."""
    return x.values if isinstance(x, SparseRows) else np.asarray(x)


def _of_graphblas(cls: type[SparseRows], matrix: Any, where: str) -> SparseRows:
    if isinstance(matrix, TransposedMatrix):
        matrix = matrix.new()
    _check_numbers(where, matrix.dtype.np_type)
    parts = matrix.ss.export("csr", sort=True)
    values = parts["values"]
    if parts["is_iso"]:
        values = np.broadcast_to(values, parts["col_indices"].shape).copy()
    starts, columns = (parts[k].astype(np.int64) for k in ("indptr", "col_indices"))
    return cls(starts, columns, np.ascontiguousarray(values), (matrix.nrows, matrix.ncols))


def _of_scipy(cls: type[SparseRows], matrix: Any, where: str) -> SparseRows:
    if matrix.ndim != 2:
        raise ArgumentError(where, "2 dimensions", f"shape {matrix.shape}")
    _check_numbers(where, matrix.dtype)
    rows = matrix.tocsr()
    try:
        rows.check_format(full_check=True)  # compiled loops trust the indices
    except (ValueError, IndexError, TypeError) as error:
        raise ArgumentError(where, "indices within the shape, rows in order", str(error)) from None
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    data = rows.data if rows.data.dtype.isnative else rows.data.astype(rows.data.dtype.newbyteorder("="))
    data = data.astype(np.float32) if data.dtype == np.float16 else data
    starts, columns = (np.ascontiguousarray(a, dtype=np.int64) for a in (rows.indptr, rows.indices))
    return cls(starts, columns, np.ascontiguousarray(data), (int(rows.shape[0]), int(rows.shape[1])))


def _check_numbers(where: str, dtype: Any) -> None:
    if dtype.kind not in "fiub":
        raise KindError(where, "real numbers", f"dtype {dtype}")
