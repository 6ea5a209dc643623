"""Prune rules: which edges of a layer go. Each is a function (site, fraction, rng) -> positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.errors import check_float, check_function
from gbnn.topology.scores import Score, checked, size
from gbnn.topology.site import Site

__all__ = [
    "Prune",
    "at_random",
    "count_of",
    "lowest",
    "lowest_by_sign",
    "magnitude",
    "sampled",
    "set_magnitude",
    "union",
]

Array = np.ndarray[Any, Any]
Prune = Callable[[Site, float, np.random.Generator], Array]
"""``(site, fraction, rng) -> ndarray of int64``: distinct positions in canonical order."""


def count_of(fraction: float, nnz: int) -> int:
    """Return ⌊fraction·nnz⌋, but 29 for 0.29 of 100 and c for the float nearest to c/nnz.

    Floating point puts 0.29·100 a little below 29: what is an integer but for rounding counts as that
    integer, for counts up to 2**48.

    Parameters
    ----------
    fraction : float
        In [0, 1].
    nnz : int

    Returns
    -------
    int
        From 0 to `nnz`.

    Raises
    ------
    ArgumentError, KindError
        If the fraction is none.

    Examples
    --------
    >>> from gbnn.topology.prune.rules import count_of
    >>> int(0.29 * 100), count_of(0.29, 100), count_of(0.299, 100), count_of(1 / 3, 3)
    (28, 29, 29, 1)
    """
    share = check_float("fraction", fraction, 0, 1)
    return min(nnz, int(share * nnz * (1 + 2**-50)))


def smallest(scores: Array, count: int) -> Array:
    """Return the positions of the `count` smallest scores, ascending; the earlier edge goes at a tie."""
    if count >= scores.size:
        return np.arange(scores.size)
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    limit = np.partition(scores, count - 1)[count - 1]
    below = np.flatnonzero(scores < limit)
    equal = np.flatnonzero(scores == limit)[: count - below.size]
    return np.sort(np.concatenate([below, equal]))


def lowest(score: Score) -> Prune:
    """Drop the ⌊fraction·nnz⌋ edges (`count_of`) of lowest score; at a tie the earlier ones.

    Parameters
    ----------
    score : callable
        One of `gbnn.topology.scores`, or another function ``(site) -> scores``.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2], [0, 0, 0], [1.0, -0.5, 0.2], shape=(3, 1))
    >>> site = Site("w", w, gradient=np.array([0.0, 1.0, 1.0]))
    >>> prune.lowest(scores.taylor)(site, 0.67, np.random.default_rng(0))
    array([0, 2])
    """
    check_function("score", score)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        return smallest(checked(score, site), count_of(fraction, site.weights.nnz))

    return rule


def lowest_by_sign(score: Score) -> Prune:
    """Drop that share of the edges with positive weights that have the lowest scores, and of the negative.

    Each share is rounded to the nearest edge. Weights that are exactly 0 carry no sign and count as
    positive. With `scores.size` this is `set_magnitude`.

    Parameters
    ----------
    score : callable

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [1.0, 2.0, -8.0, -9.0], shape=(4, 1))
    >>> prune.lowest_by_sign(scores.size)(Site("w", w), 0.5, np.random.default_rng(0))
    array([0, 2])
    """
    check_function("score", score)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        share, values, of_edges = (
            check_float("fraction", fraction, 0, 1),
            site.weights.values,
            checked(score, site),
        )
        gone = []
        for signed in (np.flatnonzero(values >= 0), np.flatnonzero(values < 0)):
            gone.append(signed[smallest(of_edges[signed], math.floor(share * signed.size + 0.5))])
        return np.sort(np.concatenate(gone))

    return rule


def magnitude(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop the ⌊fraction·nnz⌋ edges of smallest |w| (Evci et al., 2020, "Rigging the lottery").

    Parameters
    ----------
    site : Site
    fraction : float
        Share of the edges, in [0, 1]; see `count_of`.
    rng : numpy.random.Generator
        Unused: the rule is deterministic.

    Returns
    -------
    ndarray of int64
        Positions in canonical order, ascending.

    Raises
    ------
    NonFiniteError
        If a weight is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, magnitude
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> magnitude(Site("w", w), 0.5, np.random.default_rng(0))
    array([1, 2])
    """
    return lowest(size)(site, fraction, rng)


def set_magnitude(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop that share of the positive weights nearest 0 and that share of the negative ones (SET).

    Each share is rounded to the nearest edge. Weights that are exactly 0 carry no sign and count as
    positive. Mocanu et al., 2018, "Scalable training of artificial neural networks with adaptive sparse
    connectivity inspired by network science".

    Parameters, result and errors are those of `magnitude`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, set_magnitude
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> set_magnitude(Site("w", w), 0.5, np.random.default_rng(0))
    array([1, 2])
    """
    return lowest_by_sign(size)(site, fraction, rng)


def sampled(score: Score, temperature: float | Callable[[Site], float] = 1.0) -> Prune:
    """Drop ⌊fraction·nnz⌋ edges by lot: those to keep are drawn with chances in proportion to score^T.

    CHTs' soft removal (Zhang et al., 2025, arXiv:2501.19107): the kept edges are drawn one after the other
    without replacement. T = 0 drops at random, a large T the lowest scores; CHTs goes from 1 to 3 in the
    course of training. Edges of score 0 go first where T > 0.

    Parameters
    ----------
    score : callable
        Its scores must not be negative.
    temperature : float or callable
        T, at least 0; or ``(site) -> T``.

    Raises
    ------
    ArgumentError
        When pruning, if a score or T is negative.

    Notes
    -----
    The draws are those of exponential keys (Efraimidis & Spirakis, 2006): E/score^T with E exponential; the
    smallest stay. In logarithms, so that no power overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [9.0, 1.0, 0.0, -1.0], shape=(4, 1))
    >>> soft = prune.sampled(scores.size, temperature=2)
    >>> soft(Site("w", w), 0.5, np.random.default_rng(1))
    array([2, 3])
    """
    check_function("score", score)
    if not callable(temperature):
        check_float("temperature", temperature, 0)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        power = check_float("temperature", temperature(site) if callable(temperature) else temperature, 0)
        of_edges = checked(score, site).astype(np.float64)
        check_float(f"lowest score, {site.name}", of_edges.min(initial=0.0), 0)
        lot = np.maximum(rng.exponential(size=of_edges.size), np.finfo(np.float64).tiny)
        nothing = (of_edges == 0) & (power > 0)
        with np.errstate(over="ignore"):
            keep = power * np.log(np.where(of_edges == 0, 1.0, of_edges)) - np.log(lot)
        keep[nothing] = keep.min(initial=0.0) - 1 - lot[nothing]  # below all others, in an order of their own
        return smallest(keep, count_of(fraction, site.weights.nnz))

    return rule


def at_random(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop ⌊fraction·nnz⌋ edges (`count_of`), all with the same chance: the baseline of every rule.

    Parameters and result are those of `magnitude`, but that `rng` is used.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], 1.0, shape=(4, 1))
    >>> prune.at_random(Site("w", w), 0.5, np.random.default_rng(0)).size
    2
    """
    nnz = site.weights.nnz
    return np.sort(rng.permutation(nnz)[: count_of(fraction, nnz)])


def union(*rules: Prune) -> Prune:
    """Drop what any of several rules drops: SET's share and the edges of weak neurons.

    Parameters
    ----------
    *rules : callable

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> either = prune.union(prune.magnitude, prune.below(0.3))
    >>> either(Site("w", w), 0.25, np.random.default_rng(0))
    array([1, 2])
    """
    for k, rule in enumerate(rules):
        check_function(f"rules[{k}]", rule)

    def together(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        gone = [np.asarray(rule(site, fraction, rng), dtype=np.int64) for rule in rules]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *gone]))

    return together
