"""CSR matrices of hashed rows: made of blocks, never by anything that takes a step a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["Block", "csr"]

Array = np.ndarray[Any, Any]


class Block(NamedTuple):
    """Some rows: columns ascending in each, their values, and where each row ends."""

    columns: Array
    values: Array
    ends: Array


def csr(blocks: Iterable[Block], features: int) -> Any:
    """Return blocks one below the other as a `scipy.sparse.csr_array`, float32 with int64 indices."""
    parts = list(blocks)
    sizes = [np.diff(block.ends, prepend=0) for block in parts]
    starts = np.concatenate([[0], *sizes]).astype(np.int64).cumsum()
    columns = _one([block.columns for block in parts], np.int64)
    values = _one([block.values for block in parts], np.float32)
    return sp.csr_array((values, columns, starts), shape=(starts.size - 1, features))


def _one(arrays: list[Array], dtype: Any) -> Array:
    if len(arrays) == 1:
        return arrays[0].astype(dtype, copy=False)
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
