"""The two orders in which a search for the strongest absent edges visits pairs, tile by tile through BLAS."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.semirings import kernels
from gbnn.topology.grow.strongest_finalists import Finalists
from gbnn.topology.grow.strongest_neurons import Neurons

__all__ = ["by_blocks", "by_bound", "pairs_above", "tile_shape", "visit"]

Array = np.ndarray[Any, Any]


def tile_shape(left: Neurons, right: Neurons, block: int) -> tuple[int, int]:
    """Return height and width of tiles of at most `block` pairs, four times as high as wide as BLAS likes."""
    width = max(1, min(right.ids.size, math.isqrt(block // 4)))
    height = max(1, min(left.ids.size, block // width))
    return height, max(1, min(right.ids.size, block // height))


def by_blocks(left: Neurons, right: Neurons, shape: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the corners of all tiles."""
    for i in range(0, left.ids.size, shape[0]):
        for j in range(0, right.ids.size, shape[1]):
            yield i, j


def by_bound(
    left: Neurons, right: Neurons, shape: tuple[int, int], finalists: Finalists
) -> Iterator[tuple[int, int]]:
    """Yield corners of tiles in the order of their bound, ‖x‖·‖dy‖ at the corner, until none can matter.

    Neurons are sorted by norm, so the bound falls along each row of tiles: one entry a row in the heap.
    """
    grows, adds = _exact_rounding(left.values.shape[0])
    with np.errstate(over="ignore"):
        heap = [(-float(left.norms[i] * right.norms[0]), i, 0) for i in range(0, left.ids.size, shape[0])]
        heapq.heapify(heap)
        while heap and -heap[0][0] * grows + adds >= finalists.floor:
            _, i, j = heapq.heappop(heap)
            yield i, j
            if (j := j + shape[1]) < right.ids.size:
                heapq.heappush(heap, (-float(left.norms[i] * right.norms[j]), i, j))


def pairs_above(left: Neurons, right: Neurons, shape: tuple[int, int], floor: float) -> int:
    """Return how many pairs `by_bound` visits if the worst of the best has the score `floor`."""
    rows, columns = left.norms[:: shape[0]], right.norms[:: shape[1]]
    with np.errstate(over="ignore"):
        wide = np.searchsorted(-columns, -(floor / rows), side="right") * shape[1]
    high = np.minimum(shape[0], left.ids.size - shape[0] * np.arange(rows.size))
    return sum((np.minimum(wide, right.ids.size) * high).tolist())


def visit(
    corners: Iterable[tuple[int, int]],
    left: Neurons,
    right: Neurons,
    shape: tuple[int, int],
    finalists: Finalists,
    limit: int,
) -> int:
    """Propose all pairs of the given tiles that can be among the best; return how many pairs there were.

    BLAS sums in an order of its own. An edge of score s has there at least |s| - γ·‖x‖·‖dy‖, with γ of
    both roundings: all that reach that are proposed, and scored again.
    """
    space, positions = np.empty(shape[0] * shape[1], left.dtype), np.empty(shape[0] * shape[1], np.int64)
    gamma, tiny = blas_rounding(left.values.shape[0], left.dtype)
    visited, strip = 0, None
    for i, j in corners:
        rows, columns = slice(i, i + shape[0]), slice(j, j + shape[1])
        if strip is None or strip[0] != i:
            strip = i, left.strip(rows)
        x, dy = strip[1], right.strip(columns)
        visited += len(x) * len(dy)
        if visited > limit:
            raise ArgumentError("gradient growth", f"at most {limit} derivatives to compute (limit)", "more")
        scores = space[: len(x) * len(dy)].reshape(len(x), len(dy))
        with np.errstate(all="ignore"):
            np.matmul(x, dy.T, out=scores)
            margin = gamma * (left.norms[rows].max() * right.norms[columns].max()) + tiny
        low = max(finalists.floor - margin, 0.0)
        found = kernels.reaching(scores.ravel(), np.nextafter(scores.dtype.type(low), 0), positions)
        sources, targets = left.ids[rows], right.ids[columns]
        if found.size > scores.size // 8:
            _enter_all(x, dy, sources, targets, finalists)
        elif found.size:
            row, column = np.divmod(found, len(dy))
            finalists.propose(sources[row], targets[column])
    return visited


def _enter_all(x: Array, dy: Array, sources: Array, targets: Array, finalists: Finalists) -> None:
    """Score a whole tile as finalists are scored: where many pairs tie, or nothing is known yet.

    A pair takes a tenth of the time that one alone takes.
    """
    scores = np.empty((len(x), len(dy)))
    kernels.exact_block(x, np.ascontiguousarray(dy.T), scores)
    np.abs(scores, out=scores)
    step = max(1, 2**14 // len(dy))
    for i in range(0, len(x), step):
        some = scores[i : i + step]
        row, column = np.nonzero(~(some < finalists.floor))
        finalists.enter(sources[i + row], targets[column], some[row, column])


def _exact_rounding(batch: int) -> tuple[float, float]:
    """Return a, b: an edge's score is at most a·‖x‖·‖dy‖ + b (Higham, 2002, section 3.1, and underflow)."""
    return 1 + 2 * _gamma(batch + 4, np.float64), (batch + 4) * np.finfo(np.float64).smallest_subnormal


def blas_rounding(batch: int, dtype: Any) -> tuple[float, float]:
    """Return a, b: BLAS and the score of an edge differ by at most a·‖x‖·‖dy‖ + b."""
    # A processor may take numbers below the normal ones for zero.
    tiny = 2 * (batch + 4) * float(np.finfo(dtype).tiny)
    return 2 * (_gamma(batch + 4, dtype) + _gamma(batch + 4, np.float64)), tiny


def _gamma(n: int, dtype: Any) -> float:
    """Return n·u / (1 - n·u), what a sum of n products in any order can be off by, of Σ|x·dy|."""
    nu = n * float(np.finfo(dtype).eps) / 2
    return nu / (1 - nu) if nu < 1 else np.inf
