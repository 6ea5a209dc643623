"""Prune rules by use: edges no batch touches any more; the weakest of those that had their chance; none."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import check_function, check_int
from gbnn.topology.prune.rules import Prune, count_of, smallest
from gbnn.topology.scores import Score, checked, size
from gbnn.topology.site import Site
from gbnn.topology.use import NOW, last_touched, times_touched

__all__ = ["nothing", "tried", "unused"]

Array = np.ndarray[Any, Any]


def nothing(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop no edge, whatever the fraction."""
    return np.empty(0, dtype=np.int64)


def unused(patience: int) -> Prune:
    """Drop edges that no batch has touched for more than `patience` steps, whatever the fraction.

    Needs `track_use` as `each_step`. The wait of a new edge begins at the first rewiring after that which
    grew it.

    Parameters
    ----------
    patience : int
        Steps, at least 1. More than an epoch of them, or features that occur once an epoch are lost.

    Raises
    ------
    ArgumentError
        When pruning, if no use has been noted.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import topology
    >>> from gbnn.weights import Weights
    >>> site = topology.Site("w", Weights.from_coo([0, 1], [0, 0], 1.0, shape=(2, 1)))
    >>> rng = np.random.default_rng(0)
    >>> for step, gradient in enumerate([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]):
    ...     site.gradient = np.array(gradient)
    ...     topology.track_use(site, topology.Clock(step), rng)
    >>> topology.prune.unused(1)(site, 0.0, rng)
    array([0])
    """
    most = check_int("patience", patience, 1, 2**31 - 1)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        last, now = last_touched(site), int(site.memory.layer[NOW])
        last[last == 0] = now  # new, or never touched: from now on the steps are counted
        return np.flatnonzero(last < now - most)

    return rule


def tried(times: int, score: Score = size) -> Prune:
    """Drop the edges of lowest score that at least `times` batches have touched, ⌊fraction·nnz⌋ at most.

    A new edge starts at 0, and would be the first to go before it has learned anything: one of a rare feature
    has hardly been touched at the next rewiring. Needs `track_use` as `each_step`.

    Parameters
    ----------
    times : int
    score : callable
        Default |w|.

    Raises
    ------
    ArgumentError
        When pruning, if no use has been noted.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import topology
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2], [0, 0, 0], [3.0, 2.0, 1.0], shape=(3, 1))
    >>> site = topology.Site("w", w, np.array([1.0, 1.0, 0.0]))
    >>> topology.track_use(site, topology.Clock(0), np.random.default_rng(0))
    >>> topology.prune.tried(1)(site, 0.34, np.random.default_rng(0))  # edge 2 is weaker, but new
    array([1])
    """
    least = check_int("times", times, 0)
    check_function("score", score)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        had = np.flatnonzero(times_touched(site) >= least)
        picked: Array = had[smallest(checked(score, site)[had], count_of(fraction, site.weights.nnz))]
        return picked

    return rule
