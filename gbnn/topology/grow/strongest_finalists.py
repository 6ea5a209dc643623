"""The best absent edges seen so far in a search, by the one score that decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import NonFiniteError
from gbnn.semirings import Probe

__all__ = ["Finalists"]

Array = np.ndarray[Any, Any]

# Candidates looked at together: enough that a NumPy call costs more than its overhead.
_TOGETHER = 2**15
_LEAST = np.finfo(np.float64).smallest_subnormal


class Finalists:
    """The `count` absent edges of largest |s| >= floor among all proposed; ties go to the smaller edge.

    The score s of an edge is `Probe.exact`, whoever proposes it. `floor` rises to the worst score kept as
    soon as there are `count`; below it nothing can enter. Memory is O(count + one proposal).

    Attributes
    ----------
    floor : float
        Above zero: edges of score zero are not kept.
    sources, targets : ndarray of int64, shape (at most count,)
    scores : ndarray of float64
        Sizes, not negative.
    """

    def __init__(self, probe: Probe, present: Edges, count: int, floor: float) -> None:
        self._probe, self._present, self._count = probe, present, count
        self.floor = max(floor, _LEAST)
        self._last = present.shape[0]  # at a tie with the floor, only sources up to this one can enter
        self.sources, self.targets = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.scores = np.empty(0)
        self._waiting: list[tuple[Array, Array]] = []
        self._more: list[tuple[Array, Array, Array]] = []
        self._size = 0

    @property
    def complete(self) -> bool:
        """Whether nothing below the floor is missing: there are `count`, or the floor let all through."""
        return self.sources.size == self._count or self.floor == _LEAST

    def propose(self, sources: Array, targets: Array) -> None:
        """Score these edges, present or absent, and keep the best."""
        self._waiting.append((sources, targets))
        if sum(waiting.size for waiting, _ in self._waiting) >= _TOGETHER:
            self._score()

    def _score(self) -> None:
        if self._waiting:
            sources, targets = (np.concatenate(arrays) for arrays in zip(*self._waiting, strict=True))
            self._waiting = []
            order = np.argsort(sources)  # each looked up beside the last: several times faster
            for k in range(0, sources.size, _TOGETHER):
                some = order[k : k + _TOGETHER]
                scores = np.abs(self._probe.exact(sources[some], targets[some]))
                self.enter(sources[some], targets[some], scores)

    def enter(self, sources: Array, targets: Array, scores: Array) -> None:
        """Keep the best of these edges, of known scores."""
        enters = np.flatnonzero(~((scores < self.floor) | ((scores == self.floor) & (sources > self._last))))
        sources, targets, scores = sources[enters], targets[enters], scores[enters]
        absent = np.flatnonzero(self._present.find(sources, targets) < 0)
        if not np.isfinite(scores[absent]).all():
            raise NonFiniteError("gradient growth", "finite derivatives by absent edges", "overflow")
        self._more.append((sources[absent], targets[absent], scores[absent]))
        self._size += absent.size
        if self._size > max(self._count, _TOGETHER):
            self._choose()

    def _choose(self) -> None:
        """Take what has entered among the best, drop the rest, raise the floor."""
        self._more.append((self.sources, self.targets, self.scores))
        sources, targets, scores = (np.concatenate(arrays) for arrays in zip(*self._more, strict=True))
        self._more, self._size = [], 0
        if scores.size > self._count:
            limit = np.partition(scores, scores.size - self._count)[scores.size - self._count]
            above, equal = np.flatnonzero(scores > limit), np.flatnonzero(scores == limit)
            if above.size + equal.size > self._count:
                order = np.lexsort((targets[equal], sources[equal]))
                equal = equal[order[: self._count - above.size]]
            best = np.concatenate([above, equal])
            sources, targets, scores = sources[best], targets[best], scores[best]
        if scores.size == self._count:
            self.floor = scores.min()
            self._last = int(sources[scores == self.floor].max())
        self.sources, self.targets, self.scores = sources, targets, scores

    def close(self) -> None:
        """Bring in all proposed so far, and sort: strongest first, ties by the smaller (source, target)."""
        self._score()
        self._choose()
        order = np.argsort(-self.scores)
        if (np.diff(self.scores[order]) == 0).any():  # rarely; a sort by three keys takes ten times longer
            order = np.lexsort((self.targets, self.sources, -self.scores))
        self.sources, self.targets, self.scores = self.sources[order], self.targets[order], self.scores[order]
