"""Prune rules: which edges of a layer go. Each is a function (site, fraction, rng) -> positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gbnn.errors import KindError, check_float
from gbnn.topology.scores import Score, size, sums
from gbnn.topology.site import Site

__all__ = [
    "Prune",
    "at_random",
    "below",
    "below_neuron",
    "count_of",
    "lowest",
    "lowest_by_sign",
    "magnitude",
    "sampled",
    "set_magnitude",
    "sign_flip",
    "union",
]

Array = np.ndarray[Any, Any]
Prune = Callable[[Site, float, np.random.Generator], Array]
"""``(site, fraction, rng) -> ndarray of int64``: distinct positions in canonical order."""

SIGN = "sign"
"""`Memory.edges` of `sign_flip`."""


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
    >>> from gbnn.topology.prune import count_of
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
    _check_function("score", score)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        return smallest(score(site), count_of(fraction, site.weights.nnz))

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
    _check_function("score", score)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        share, values, of_edges = check_float("fraction", fraction, 0, 1), site.weights.values, score(site)
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
    array([1, 2])
    """
    _check_function("score", score)
    if not callable(temperature):
        check_float("temperature", temperature, 0)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        power = check_float("temperature", temperature(site) if callable(temperature) else temperature, 0)
        of_edges = score(site).astype(np.float64)
        check_float(f"lowest score, {site.name}", of_edges.min(initial=0.0), 0)
        # Below any score that a product of two numbers of float32 can have, and above log 0.
        keep = power * np.log(np.maximum(of_edges, np.finfo(np.float64).tiny))
        keep -= np.log(np.maximum(rng.exponential(size=of_edges.size), np.finfo(np.float64).tiny))
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


def below(threshold: float, score: Score = size) -> Prune:
    """Drop the edges whose score is below a threshold, however many; the fraction is ignored.

    Parameters
    ----------
    threshold : float
    score : callable

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> prune.below(0.3)(Site("w", w), 0.0, np.random.default_rng(0))
    array([1, 2])
    """
    limit = check_float("threshold", threshold)
    _check_function("score", score)
    return lambda site, fraction, rng: np.flatnonzero(score(site) < limit)


def sign_flip(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop the edges whose weight has changed its sign, however many (DEEP-R; Bellec et al., 2018).

    An edge's sign is the first it is seen with (a weight of 0 has none yet), kept in
    ``site.memory.edges["sign"]``; a recipe may write it there when the edge is made. So the first call drops
    none. arXiv:1711.05136.

    Parameters, result and errors are those of `magnitude`; the fraction is ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1], [0, 0], [0.5, -0.1], shape=(2, 1)))
    >>> rng = np.random.default_rng(0)
    >>> prune.sign_flip(site, 0.0, rng)
    array([], dtype=int64)
    >>> site.weights.assign([-0.1, -0.2])
    >>> prune.sign_flip(site, 0.0, rng)
    array([0])
    """
    size(site)  # raises where a weight is NaN, and so without a sign
    now = np.sign(site.weights.values).astype(np.int8)
    known = site.memory.edges.get(SIGN, now)
    # A sign once known is not written again: asked twice, the rule gives the same answer.
    site.memory.edges[SIGN] = np.where(known == 0, now, known)
    return np.flatnonzero(known * now < 0)


def below_neuron(percentile: float = 10.0) -> Prune:
    """Drop all edges into the neurons whose Σ|w| is at or below a percentile, however many edges that are.

    Importance pruning (Curci et al., 2021, arXiv:2102.01732). The percentile is one of all neurons of the
    layer, those without edges (their sum is 0) included, between two of them by linear interpolation. The
    fraction is ignored. Where all neurons are equally strong, all edges go.

    Parameters
    ----------
    percentile : float
        In [0, 100]; the authors' code takes 10 or 20.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, prune
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 0, 0, 1], [0, 1, 2, 0], [0.1, 0.5, 4.0, -0.1], shape=(2, 3))
    >>> prune.below_neuron(40)(Site("w", w), 0.0, np.random.default_rng(0))
    array([0, 3])
    """
    share = check_float("percentile", percentile, 0, 100)

    def rule(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        edges, weight = site.weights.edges, size(site)
        strength = sums(edges.by_target, weight[edges.order])
        ranked = np.sort(strength)
        without = edges.shape[1] - ranked.size
        place = Fraction(share) / 100 * (edges.shape[1] - 1)
        first = math.floor(place)
        # Neurons without edges come first in the order, and are not listed.
        low, high = (0.0 if k < without else ranked[min(k - without, ranked.size - 1)] for k in (first, first + 1))
        if first + 1 >= edges.shape[1]:
            high = low
        limit = low + (high - low) * float(place - first)
        weak = np.repeat(strength <= limit, np.diff(edges.by_target.starts))
        return np.sort(edges.order[weak])

    return rule


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
        _check_function(f"rules[{k}]", rule)

    def together(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        gone = [np.asarray(rule(site, fraction, rng), dtype=np.int64) for rule in rules]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *gone]))

    return together


def _check_function(where: str, part: Any) -> None:
    if not callable(part):
        raise KindError(where, "a function", repr(part))
