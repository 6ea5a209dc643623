"""From counts to TF-IDF weights: `Weighting` holds the settings, and weighs one block of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbnn.data.hashing.frequencies import Frequencies, look_up
from gbnn.data.hashing.rows import Block
from gbnn.engine import kept_on_disk

__all__ = ["TF", "Weighting"]

BINARY, COUNT, LOG = 0, 1, 2

TF = {"binary": BINARY, "count": COUNT, "log": LOG}


def _weigh(  # type: ignore[no-untyped-def]
    columns, counts, ends, tf, keys, seen, rows, min_df, idf, unit_length, weights, kept_columns, kept_ends
):
    """Weigh each row's counts, leave out columns seen in fewer than `min_df` rows; returns how many are left.

    weights, kept_columns : filled up to there.
    """
    begin = filled = 0
    for row in range(ends.size):
        stop, first, squares = ends[row], filled, 0.0
        for k in range(begin, stop):
            df = look_up(keys, seen, columns[k]) if idf or min_df > 0 else 0
            if df < min_df:
                continue
            weight = 1.0 if tf == BINARY else float(counts[k])
            if tf == LOG and weight > 1:
                weight = 1.0 + np.log(weight)
            if idf:
                weight *= np.log((1.0 + rows) / (1.0 + df)) + 1.0
            kept_columns[filled] = columns[k]
            weights[filled] = weight
            squares += weight * weight
            filled += 1
        if unit_length and squares > 0:
            length = np.sqrt(squares)
            for k in range(first, filled):
                weights[k] = weights[k] / length
        kept_ends[row] = filled
        begin = stop
    return filled


_compiled = kept_on_disk(_weigh, nogil=True)


@dataclass(frozen=True)
class Weighting:
    """How counts become weights; what each means is said at `HashingText`."""

    tf: str
    idf: bool
    min_df: int
    unit_length: bool

    @property
    def needs_frequencies(self) -> bool:
        """Whether weights depend on document frequencies."""
        return self.idf or self.min_df > 0

    def weigh(self, block: Block, seen: Frequencies, documents: int) -> Block:
        """Return the rows of a block of counts weighed, float32, columns with few documents left out."""
        columns, ends = np.empty_like(block.columns), np.empty_like(block.ends)
        weights = np.empty(columns.size, dtype=np.float32)
        filled = _compiled(
            block.columns, block.values, block.ends, TF[self.tf], seen.keys, seen.counts,
            documents, self.min_df, self.idf, self.unit_length, weights, columns, ends,
        )  # fmt: skip
        if filled == columns.size:
            return Block(columns, weights, ends)
        return Block(columns[:filled].copy(), weights[:filled].copy(), ends)
