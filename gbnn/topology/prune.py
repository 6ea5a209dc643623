"""Prune rules: which edges of a layer go. Each is a function (site, fraction, rng) -> positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.topology.site import Site

__all__ = ["Prune", "magnitude", "set_magnitude"]

Array = np.ndarray[Any, Any]
Prune = Callable[[Site, float, np.random.Generator], Array]


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


def magnitude(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop the ⌊fraction·nnz⌋ edges of smallest |w| (Evci et al., 2020, "Rigging the lottery").

    Parameters
    ----------
    site : Site
    fraction : float
        Share of the edges, in [0, 1].
    rng : numpy.random.Generator
        Unused: the rule is deterministic.

    Returns
    -------
    ndarray of int64
        Positions in canonical order, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, magnitude
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> magnitude(Site("w", w), 0.5, np.random.default_rng(0))
    array([1, 2])
    """
    return smallest(np.abs(site.weights.values), int(fraction * site.weights.nnz))


def set_magnitude(site: Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop that share of the positive weights nearest 0 and that share of the negative ones (SET).

    Each share is rounded to the nearest edge. Weights that are exactly 0 carry no sign and count as
    positive. Mocanu et al., 2018, "Scalable training of artificial neural networks with adaptive sparse
    connectivity inspired by network science".

    Parameters and result are those of `magnitude`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, set_magnitude
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> set_magnitude(Site("w", w), 0.5, np.random.default_rng(0))
    array([1, 2])
    """
    values = site.weights.values
    gone = []
    for signed in (np.flatnonzero(values >= 0), np.flatnonzero(values < 0)):
        count = int(np.floor(fraction * signed.size + 0.5))
        gone.append(signed[smallest(np.abs(values[signed]), count)])
    return np.sort(np.concatenate(gone))
