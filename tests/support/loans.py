"""Small arrays to lend, and where GraphBLAS reads what was lent."""

from __future__ import annotations

import numpy as np

DTYPES = [np.float32, np.float64, np.bool_]
HUGE = 2**60


def full(rows=2, columns=3, dtype=np.float32):
    return np.asfortranarray(np.arange(rows * columns).reshape(rows, columns).astype(dtype))


def int64(*numbers):
    return np.array(numbers, dtype=np.int64)


def parts(dtype=np.float32):
    """Columns 1 and 4: entries (0, 1), (2, 1), (1, 4)."""
    return int64(1, 4), int64(0, 2, 3), int64(0, 2, 1), np.array([1, 0, 1], dtype=dtype)


def misaligned(array):
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)[1:]
    copy = raw.view(array.dtype).reshape(array.shape, order="F")
    copy[...] = array
    return copy


def addresses(matrix):
    """Where GraphBLAS itself reads: the loan is taken back for a moment, which gives the pointers."""
    loan = matrix.T._parent
    came = loan._unpack()
    loan.pack()
    return came


def noise():
    return [np.full(n, 77, dtype=np.float32) for n in (6, 6, 6, 1000, 100_000)]
