"""How much each layer grows: functions (sites, dropped, total) -> counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, check_float, check_function, check_int, check_list
from gbnn.topology.divide import divide
from gbnn.topology.grow.strongest import search_absent
from gbnn.topology.scores import Score, checked, momentum_size
from gbnn.topology.site import Site

__all__ = [
    "Allocate",
    "by_edges",
    "by_gradient",
    "by_mean",
    "by_momentum",
    "by_size",
    "by_survivors",
    "fixed",
    "mean_shares",
    "same",
]

Array = np.ndarray[Any, Any]
Allocate = Callable[[Sequence[Site], Sequence[Array], int], list[int]]
"""``(sites, dropped positions of each, total) -> counts``: they sum to `total`, and each finds room."""


def same(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Let every layer grow as many edges as it dropped; if more or fewer grow in all, in proportion.

    Parameters
    ----------
    sites : sequence of Site
    dropped : sequence of ndarray
        The positions of the edges that go, for each layer.
    total : int
        Edges to grow in all layers together.

    Returns
    -------
    list of int
        For each layer; the sum is `total`, and no layer gets more than its free places.

    Raises
    ------
    ArgumentError
        If all layers together have fewer free places than `total`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=9, seed=0), layers.Linear.random(4, 4, nnz=9))
    >>> places = topology.sites(chain.parameters())
    >>> topology.same(places, [np.array([3, 5]), np.array([2])], 3)
    [2, 1]
    >>> topology.same(places, [np.array([3, 5]), np.array([2])], 9)
    [6, 3]
    """
    return divide(total, [len(gone) for gone in dropped], _room(sites, dropped))


def fixed(shares: Sequence[float]) -> Allocate:
    """Grow in shares that are given, one a layer that takes part; see `divide` where one is full.

    Parameters
    ----------
    shares : sequence of float
        At least 0; they need not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import redistribute
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=9, seed=0), layers.Linear.random(4, 4, nnz=9))
    >>> none = np.empty(0, dtype=int)
    >>> redistribute.fixed([1, 3])(topology.sites(chain.parameters()), [none, none], 8)
    [2, 6]
    """
    listed = check_list("shares", shares, "a list of numbers, one a layer")
    each = [Fraction(check_float(f"shares[{k}]", share, 0)) for k, share in enumerate(listed)]

    def allocate(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
        if len(sites) != len(each):
            raise ArgumentError("shares", f"{len(sites)} numbers, one a layer that takes part", len(each))
        return divide(total, each, _room(sites, dropped))

    return allocate


def by_survivors(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Grow in proportion to the edges that are left (DSR; Mostafa & Wang, 2019, arXiv:1902.05967).

    A layer that loses a larger share of its edges than the others shrinks. Parameters, result and errors are
    those of `same`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import redistribute
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=9, seed=0), layers.Linear.random(4, 4, nnz=9))
    >>> gone = [np.arange(8), np.arange(2)]
    >>> redistribute.by_survivors(topology.sites(chain.parameters()), gone, 8)
    [1, 7]
    """
    left = [site.weights.nnz - len(gone) for site, gone in zip(sites, dropped, strict=True)]
    return divide(total, left, _room(sites, dropped))


def by_edges(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Grow in proportion to the edges that each layer had ("nonzeros" in sparse momentum's code).

    Parameters, result and errors are those of `same`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import redistribute
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=20, seed=0), layers.Linear.random(4, 4, nnz=4))
    >>> gone = [np.arange(1), np.arange(2)]
    >>> redistribute.by_edges(topology.sites(chain.parameters()), gone, 6)
    [5, 1]
    """
    return divide(total, [site.weights.nnz for site in sites], _room(sites, dropped))


def by_size(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Grow in proportion to in x out: towards the same density everywhere.

    Parameters, result and errors are those of `same`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import redistribute
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=9, seed=0), layers.Linear.random(4, 4, nnz=4))
    >>> gone = [np.arange(1), np.arange(2)]
    >>> redistribute.by_size(topology.sites(chain.parameters()), gone, 3)
    [2, 1]
    """
    return divide(total, [site.places for site in sites], _room(sites, dropped))


def mean_shares(sites: Sequence[Site], score: Score = momentum_size) -> list[Fraction]:
    """Return each layer's mean score over its edges, as a share of the sum over the layers.

    Parameters
    ----------
    sites : sequence of Site
    score : callable
        Its scores must not be negative.

    Returns
    -------
    list of Fraction
        They sum to 1, or all are 0 where no score is above 0. A layer without edges has 0.

    Raises
    ------
    ArgumentError
        If a score is negative.

    Examples
    --------
    >>> from gbnn.topology import Site, redistribute, scores
    >>> from gbnn.weights import Weights
    >>> sites = [Site(f"{n}", Weights.from_coo(range(n), range(n), n, shape=(4, 4))) for n in (1, 3)]
    >>> redistribute.mean_shares(sites, scores.size)
    [Fraction(1, 4), Fraction(3, 4)]
    """
    means = []
    for site in sites:
        of_edges = checked(score, site)
        check_float(f"lowest score, {site.name}", of_edges.min(initial=0.0), 0)
        means.append(float(of_edges.mean(dtype=np.float64)) if of_edges.size else 0.0)
    whole = sum(map(Fraction, means), Fraction(0))
    return [Fraction(mean) / whole if whole else Fraction(0) for mean in means]


def by_mean(score: Score) -> Allocate:
    """Grow in proportion to the mean score of each layer's edges, as sparse momentum divides.

    The edges are those before the rewiring, dropped ones included. No layer is filled beyond 99 % of its
    free places; what it gets less is divided evenly among all layers, again and again until it has found
    room, as in the authors' code. That code rounds up, and makes good for it at the next rewirings; here the
    sum is exact at once, by largest remainders. Only where 99 % of all free places are not enough, more are
    taken. Without any score above 0, layers grow as `same` has it.

    Parameters
    ----------
    score : callable
        Its scores must not be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, redistribute, scores
    >>> from gbnn.weights import Weights
    >>> sites = [Site(f"{n}", Weights.from_coo(range(n), range(n), n, shape=(9, 9))) for n in (1, 3)]
    >>> redistribute.by_mean(scores.size)(sites, [np.array([0]), np.array([0, 1])], 40)
    [10, 30]
    """
    check_function("score", score)

    def allocate(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
        shares, room = mean_shares(sites, score), _room(sites, dropped)
        if not any(shares):
            return same(sites, dropped, total)
        whole, most = _within(total, room), [Fraction(99 * free, 100) for free in room]
        if whole >= sum(most):
            return divide(whole, room, room)
        ideal = [share * whole for share in shares]
        full = [k for k, wish in enumerate(ideal) if wish >= most[k]]
        while True:
            # In the limit, all that are not full have got the same, so much that the sum is right.
            open_layers = [k for k in range(len(ideal)) if k not in full]
            counts = [most[k] if k in full else wish for k, wish in enumerate(ideal)]
            more = (whole - sum(counts, Fraction(0))) / len(open_layers)
            now = [k for k in open_layers if ideal[k] + more >= most[k]]
            if not now:
                break
            full += now
        return _rounded([count if k in full else count + more for k, count in enumerate(counts)], whole)

    return allocate


def by_momentum(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Grow in proportion to the mean |momentum| of each layer's edges: `by_mean` of `momentum_size`.

    Sparse momentum (Dettmers & Zettlemoyer, 2019, arXiv:1907.04840): a layer whose weights are moved most
    profits most from more edges. Parameters and result are those of `same`; errors also those of the score.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, redistribute
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 1], 1.0, shape=(9, 9))
    >>> calm, lively = (Site("w", w, slots={"momentum": np.array([m, -m])}) for m in (0.1, 0.7))
    >>> redistribute.by_momentum([calm, lively], [np.array([0]), np.array([0])], 16)
    [2, 14]
    """
    return by_mean(momentum_size)(sites, dropped, total)


def by_gradient(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Grow where the `total` absent edges of largest |gradient| over all layers are.

    Edges just dropped count as absent, as for RigL; grown by `gradient`, exactly those edges come. At a tie
    the earlier layer, then the smaller (source, target) wins. Costs about as much as growing so many edges
    by gradient in every layer. Parameters and result are those of `same`, and

    Raises
    ------
    ArgumentError
        If a layer is no plus_times one, or has too many places to search (see `search_absent`).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import redistribute
    >>> chain = layers.Chain(*(layers.Linear.from_dense(np.eye(2)) for _ in range(2)))
    >>> _, pullback = chain.forward(np.array([[1.0, 2.0]]))
    >>> _, gradients = pullback(np.array([[3.0, 1.0]]))
    >>> places = topology.sites(chain.parameters(), gradients)
    >>> redistribute.by_gradient(places, [np.array([0]), np.array([])], 2)
    [1, 1]
    """
    room = _room(sites, dropped)
    whole = _within(total, room)
    found = [
        _strongest(site, gone, min(whole, free))
        for site, gone, free in zip(sites, dropped, room, strict=True)
    ]
    layer = np.repeat(np.arange(len(sites)), [scores.size for scores in found])
    order = np.argsort(-np.concatenate([np.empty(0), *found]), kind="stable")[:whole]
    counts: list[int] = np.bincount(layer[order], minlength=len(sites)).tolist()
    return counts


def _strongest(site: Site, gone: Array, count: int) -> Array:
    """Return the |gradient| of the `count` strongest absent edges, strongest first."""
    if not count:
        return np.empty(0)
    return search_absent(site.probe, site.kept(np.asarray(gone, dtype=np.int64)), count).scores


def _room(sites: Sequence[Site], dropped: Sequence[Array]) -> list[int]:
    """Return the free places of each layer, those of the dropped edges included."""
    return [site.free + len(gone) for site, gone in zip(sites, dropped, strict=True)]


def _within(total: int, room: Sequence[int]) -> int:
    """Return `total` as an int if there is so much room, or raise."""
    return check_int("edges to grow", total, 0, sum(room))


def _rounded(ideal: Sequence[Fraction], total: int) -> list[int]:
    """Round numbers that sum to `total` to integers that do, by largest remainders, the earlier at a tie."""
    counts = [math.floor(wish) for wish in ideal]
    missing = total - sum(counts)
    for k in sorted(range(len(counts)), key=lambda k: counts[k] - ideal[k])[:missing]:
        counts[k] += 1
    return counts
