"""`strongest_links`: the absent edges of largest Cannistraci-Hebb score, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.engine import threads
from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.topology.grow import hebb_kernels as kernels

__all__ = ["BLOCK", "check_flag", "fixed_point", "strongest_links"]

Array = np.ndarray[Any, Any]

# Entries of one block: the search holds about 30 bytes for each, and touches only those it needs.
BLOCK = 2**23


def check_flag(where: str, value: Any) -> bool:
    """Return `value` if it is True or False, or raise KindError."""
    if not isinstance(value, bool | np.bool_):
        raise KindError(where, "True or False", repr(value))
    return bool(value)


def fixed_point(edges: Edges, internal: bool) -> float:
    """Return the power of two of which scores are multiples of the inverse.

    Every Φ is rounded down to a multiple of 1/scale, so fine as to leave scores below 2**52/scale: then
    float64 adds them exactly, and neither the order of summation nor the size of a block can change one.

    Examples
    --------
    >>> from gbnn.edges import Edges
    >>> from gbnn.topology.grow.hebb_search import fixed_point
    >>> edges, _ = Edges.from_coo([0, 1, 1], [0, 0, 1], (2, 2))
    >>> fixed_point(edges, internal=False) == 2.0**49
    True
    """
    bound = 0
    for group, other in ((edges.by_source, edges.by_target), (edges.by_target, edges.by_source)):
        # A neighbour adds at most 1 (CH3), or one more than it has links (CH2).
        most = np.ones(edges.nnz, dtype=np.int64)
        if internal:
            most += np.diff(other.starts)[np.searchsorted(other.ids, group.others)]
        if edges.nnz:
            bound += int(np.add.reduceat(most, group.starts[:-1]).max())
    return 2.0 ** (52 - bound.bit_length())


def strongest_links(
    edges: Edges, count: int, *, internal: bool = False, seed: int | None = None, block: int = BLOCK
) -> tuple[Array, Array, Array]:
    """Return the `count` absent edges of largest score, or as many as have one above zero.

    Parameters
    ----------
    edges : Edges
        The graph; its own edges are not returned.
    count : int
    internal : bool
        CH2-L3 (True) or CH3-L3 (False); see `gbnn.topology.cannistraci_hebb`.
    seed : int, optional
        From 0 to 2**64 - 1. If given, the edges are drawn without replacement with probability in proportion
        to the score: those of largest score / E, with E exponential and fixed by the seed and the place
        (Efraimidis and Spirakis, 2006).
    block : int
        Entries of one block. It changes time and memory, never the result.

    Returns
    -------
    sources, targets : ndarray of int64, shape (at most count,), strongest first
        At a tie the smaller (source, target) comes first.
    scores : ndarray of float64
        Of each; score / E if drawn.

    Raises
    ------
    ArgumentError
        If the graph has 2**31 edges or more, or an argument is out of range.

    Notes
    -----
    Memory is O(nnz + count + block + threads x neurons with edges). Time is that of the two products: about
    2·in·f³ additions for fans of f everywhere.

    Examples
    --------
    >>> from gbnn.edges import Edges
    >>> from gbnn.topology.grow.hebb_search import strongest_links
    >>> edges, _ = Edges.from_coo([0, 1, 1, 2], [0, 0, 1, 1], (3, 3))
    >>> strongest_links(edges, 5)
    (array([0, 2]), array([1, 0]), array([2., 2.]))
    """
    check_int("block", block, 1)
    check_flag("internal", internal)
    if edges.nnz >= 2**31:
        raise ArgumentError("Cannistraci-Hebb scores", "a graph of fewer than 2**31 edges", edges.nnz)
    best = _Best(check_int("count", count, 0))
    if count and edges.nnz:
        state = np.uint64(0 if seed is None else check_int("seed", seed, 0, 2**64 - 1))
        with ThreadPoolExecutor(max(1, threads())) as pool:
            _Search(edges, internal, seed is not None, state, block, pool).run(best)
    order = np.lexsort((best.keys, -best.scores))
    source, target = np.divmod(best.keys[order], max(1, edges.by_target.ids.size))
    scores = best.scores[order] / (fixed_point(edges, internal) if edges.nnz else 1.0)
    return edges.by_source.ids[source], edges.by_target.ids[target], scores


class _Best:
    """The best places so far, and what a better one has to beat."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.scores, self.keys = np.empty(0), np.empty(0, dtype=np.int64)
        self.worst, self.last = 0.0, -1  # nothing beats a score of 0 by being equal

    def take(self, scores: list[Array], keys: list[Array]) -> None:
        score, key = np.concatenate([self.scores, *scores]), np.concatenate([self.keys, *keys])
        if score.size > self.count:
            limit = np.partition(score, score.size - self.count)[score.size - self.count]
            above, equal = np.flatnonzero(score > limit), np.flatnonzero(score == limit)
            equal = equal[np.argsort(key[equal])[: self.count - above.size]]
            chosen = np.concatenate([above, equal])
            score, key = score[chosen], key[chosen]
        self.scores, self.keys = score, key
        if score.size == self.count:
            self.worst = float(score.min())
            self.last = int(key[score == self.worst].max())


class _Search:
    """One search: bands of targets one after the other, and in each batches of sources."""

    def __init__(
        self,
        edges: Edges,
        internal: bool,
        sampled: bool,
        seed: np.uint64,
        block: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        (ids, out_starts, _), (others, in_starts, _) = edges.by_source, edges.by_target
        self.rows, self.columns = ids.size, others.size
        # Sources and targets numbered without gaps: a layer of 2**60 neurons costs what its edges cost.
        targets = np.empty(edges.nnz, dtype=np.int32)
        targets[edges.order] = np.repeat(np.arange(self.columns, dtype=np.int32), np.diff(in_starts))
        self.sources = np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(out_starts))
        self.graph = kernels.Bipartite(out_starts, targets, in_starts, self.sources[edges.order])
        self.rule = (internal, fixed_point(edges, internal))
        self.draw = (sampled, seed)
        self.pool, self.workers, self.block = pool, max(1, threads()), block

    def _all(self, work: Callable[[int], int]) -> list[int]:
        return list(self.pool.map(work, range(self.workers)))

    def _counts(self, first: int, width: int, low: Array, high: Array) -> Array:
        counts = np.empty(self.columns, dtype=np.int64)
        self._all(
            lambda c: kernels.count_common(self.graph, first, width, low, high, counts, c, self.workers)
        )
        return counts

    def run(self, best: _Best) -> None:
        starts, targets = self.graph.out_starts, self.graph.targets
        low, high = starts[:-1], starts[1:]
        counts = self._counts(0, self.columns, low, high)
        ends = np.cumsum(counts)  # A^T·A is symmetric: of its columns, too
        keys = self.sources.astype(np.int64) * self.columns + targets
        first = 0
        while first < self.columns:
            before = int(ends[first - 1]) if first else 0
            stop = int(np.searchsorted(ends, before + self.block, side="right"))
            stop = min(max(stop, first + 1), self.columns)
            if stop - first < self.columns:
                low = np.searchsorted(keys, np.arange(self.rows) * self.columns + first)
                high = np.searchsorted(keys, np.arange(self.rows) * self.columns + stop)
                counts = self._counts(first, stop - first, low, high)
            self._band(best, first, stop - first, low, high, counts)
            first = stop

    def _band(self, best: _Best, first: int, width: int, low: Array, high: Array, counts: Array) -> None:
        starts = np.append(0, np.cumsum(counts))
        others, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
        band = kernels.Band(first, width, low, high, starts, others, values)
        self._all(lambda c: kernels.fill_common(self.graph, band, *self.rule, c, self.workers))
        # At most this many places of each source get a score: what the products multiply, or the whole band.
        reach = np.bincount(self.graph.targets, (high - low)[self.sources], minlength=self.columns) + counts
        most = np.minimum(np.bincount(self.sources, reach[self.graph.targets]), width).astype(np.int64)
        ends = np.append(0, np.cumsum(most))
        found = np.empty(max(min(self.block, int(ends[-1])), int(most.max())))
        keys = np.empty(found.size, dtype=np.int64)
        # The first batch about fills the choice, and each is as long as all before: little is taken in vain.
        begin, size = 0, 2 * best.count
        while begin < self.rows:
            size = min(size, self.block)
            stop = max(begin + 1, int(np.searchsorted(ends, ends[begin] + size, side="right")) - 1)
            parts = [int(most[begin + c : stop : self.workers].sum()) for c in range(self.workers)]
            limit = (begin, stop, best.worst, best.last)
            best.take(*self._scan(band, limit, np.cumsum([0, *parts]), found, keys))
            begin, size = stop, 2 * size

    def _scan(
        self, band: kernels.Band, limit: tuple[int, int, float, int], at: Array, found: Array, keys: Array
    ) -> tuple[list[Array], list[Array]]:
        """Return what each worker found; worker c writes from place `at[c]` of `found` and `keys` on."""

        def scan(c: int) -> int:
            out = (found[at[c] : at[c + 1]], keys[at[c] : at[c + 1]], c, self.workers)
            return int(kernels.scan(self.graph, band, *self.rule, *self.draw, *limit, *out))

        sizes = self._all(scan)
        parts = [slice(start, start + n) for start, n in zip(at, sizes, strict=False)]
        return [found[part] for part in parts], [keys[part] for part in parts]
