"""Prune rules that go by a limit instead of a share: as many edges go as it says. The fraction is ignored."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from gbnn.errors import check_float, check_function
from gbnn.topology.prune.rules import Prune
from gbnn.topology.scores import Score, checked, size, sums
from gbnn.topology.site import Site

__all__ = ["below", "below_neuron", "sign_flip"]

Array = np.ndarray[Any, Any]

SIGN = "sign"
"""`Memory.edges` of `sign_flip`."""


def below(threshold: float, score: Score = size) -> Prune:
    """Drop the edges whose score is below a threshold.

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
    check_function("score", score)
    return lambda site, fraction, rng: np.flatnonzero(checked(score, site) < limit)


def sign_flip(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop the edges whose weight has changed its sign (DEEP-R; Bellec et al., 2018).

    An edge's sign is the first it is seen with (a weight of 0 has none yet), kept in
    ``site.memory.edges["sign"]``; a recipe may write it there when the edge is made. So the first call drops
    none. arXiv:1711.05136.

    Parameters, result and errors are those of `prune.magnitude`, but for the fraction.

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
    checked(size, site)  # raises where a weight is NaN, and so without a sign
    now = np.sign(site.weights.values).astype(np.int8)
    known = site.memory.edges.get(SIGN, now)
    # A sign once known is not written again: asked twice, the rule gives the same answer.
    site.memory.edges[SIGN] = np.where(known == 0, now, known)
    return np.flatnonzero(known * now < 0)


def below_neuron(percentile: float = 10.0) -> Prune:
    """Drop all edges into the neurons whose Σ|w| is at or below a percentile.

    Importance pruning (Curci et al., 2021, arXiv:2102.01732). The percentile is one of all neurons of the
    layer, those without edges (their sum is 0) included, between two of them by linear interpolation. Where
    all neurons are equally strong, all edges go.

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
        edges, weight = site.weights.edges, checked(size, site)
        strength = sums(edges.by_target, weight[edges.order])
        if not strength.size:
            return np.empty(0, dtype=np.int64)
        ranked = np.sort(strength)
        without = edges.shape[1] - ranked.size
        place = Fraction(share) / 100 * (edges.shape[1] - 1)
        first = math.floor(place)
        # Neurons without edges come first in the order, and are not listed.
        low, high = (
            0.0 if k < without else ranked[min(k - without, ranked.size - 1)] for k in (first, first + 1)
        )
        limit = low + (high - low) * float(place - first)
        weak = np.repeat(strength <= limit, np.diff(edges.by_target.starts))
        return np.sort(edges.order[weak])

    return rule
