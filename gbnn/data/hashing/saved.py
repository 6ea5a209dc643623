"""Checks of what was saved of a `HashingText`: it may come from a file of someone else's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_int

__all__ = ["check_fit", "checked_parts"]

Array = np.ndarray[Any, Any]

PARTS = ("options", "documents", "columns", "frequencies")


def checked_parts(state: Any) -> tuple[dict[str, Any], int, Array, Array]:
    """Return the parts of a state, each of its kind, or raise KindError or ArgumentError."""
    if not isinstance(state, Mapping) or set(state) != set(PARTS):
        got = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise KindError("state", f"a dict of {', '.join(PARTS)}", got)
    if not isinstance(state["options"], Mapping):
        raise KindError("state['options']", "a dict", type(state["options"]).__name__)
    arrays = []
    for name in PARTS[2:]:
        array = np.asarray(state[name])
        if array.dtype != np.int64 or array.ndim != 1:
            raise KindError(f"state[{name!r}]", "1-D int64", f"{array.dtype} of shape {array.shape}")
        arrays.append(array)
    documents = check_int("state['documents']", state["documents"], 0)
    return dict(state["options"]), documents, arrays[0], arrays[1]


def check_fit(documents: int, columns: Array, frequencies: Array, bits: int) -> None:
    """Raise ArgumentError unless the columns ascend within `bits` and each was in 1 to `documents` texts."""
    if columns.size != frequencies.size:
        raise ArgumentError("state", "as many frequencies as columns", f"{frequencies.size}, {columns.size}")
    if columns.size == 0:
        return
    if columns[0] < 0 or columns[-1] >= 2**bits or bool((columns[1:] <= columns[:-1]).any()):
        raise ArgumentError("state['columns']", f"ascending numbers within {bits} bits", "others")
    if frequencies.min() < 1 or frequencies.max() > documents:
        got = f"{frequencies.min()} to {frequencies.max()}"
        raise ArgumentError("state['frequencies']", f"numbers from 1 to {documents}", got)
