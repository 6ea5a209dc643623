"""Rates that go by what training has done so far: DSR, CHT, sparse momentum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gbnn.errors import check_float, check_function, check_int
from gbnn.topology.rates.fixed import Rates, asked, equal, shares_of
from gbnn.topology.redistribute import mean_shares
from gbnn.topology.scores import checked, size
from gbnn.topology.site import Site

__all__ = ["adaptive_threshold", "momentum_guard", "until_settled"]

OVERLAP, SETTLED, THRESHOLD = "overlap", "settled", "threshold"
"""What is kept in `Memory.layer`; "overlap" is written by `Rewiring`."""


def adaptive_threshold(start: float = 1e-3, aim: int | float = 600) -> Rates:
    """Drop the edges with |w| below one threshold of all layers, which adapts to how many that are (DSR).

    After each rewiring that drops more than 1.1 times `aim` it is halved; after less than 0.9 times,
    doubled. A layer that would lose all its edges keeps one. Use it with `prune.magnitude`; the schedule's
    fraction is ignored. Mostafa & Wang, 2019, arXiv:1902.05967.

    Parameters
    ----------
    start : float
        The first threshold, positive.
    aim : int or float
        How many edges to drop in all: a number, or a share of all edges in (0, 1]. The authors' code takes
        600 on MNIST.

    Notes
    -----
    The threshold of the next rewiring is in every layer's ``site.memory.layer["threshold"]``.

    Examples
    --------
    >>> from gbnn.topology import Site, rates
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [0.5, -0.1, 0.2, -3.0], shape=(4, 1))
    >>> site, below = Site("w", w), rates.adaptive_threshold(0.15, aim=2)
    >>> [below([site], 0.0), below([site], 0.0), below([site], 0.0)]
    [[0.25], [0.5], [0.5]]
    """
    check_float("start", start, 0, open_low=True)
    if isinstance(aim, float | np.floating):
        check_float("aim", aim, 0, 1, open_low=True)
    else:
        check_int("aim", aim, 1)

    def threshold(sites: Sequence[Site], fraction: float) -> list[float]:
        known = [float(site.memory.layer[THRESHOLD]) for site in sites if THRESHOLD in site.memory.layer]
        limit, counts = known[0] if known else float(start), []
        for site in sites:
            low = int(np.count_nonzero(checked(size, site) < limit))
            counts.append(min(low, max(site.weights.nnz - 1, 0)))
        wanted = aim if not isinstance(aim, float | np.floating) else aim * sum(s.weights.nnz for s in sites)
        if sum(counts) > 1.1 * wanted:
            limit /= 2
        elif sum(counts) < 0.9 * wanted:
            limit = min(2 * limit, float(np.finfo(np.float64).max))
        for site in sites:
            site.memory.layer[THRESHOLD] = np.array(limit)
        return shares_of(sites, counts)

    return threshold


def until_settled(overlap: float = 0.9, rates: Rates = equal) -> Rates:
    """Let a layer rest for good once it grows again nearly all that it drops (CHT).

    That is once the share of its dropped edges that were grown again, at its last rewiring, is above
    `overlap` (CHT: 0.9; Zhang et al., 2024, ICLR). `Rewiring` notes that share in
    ``site.memory.layer["overlap"]``; that a layer has settled is noted in "settled".

    Parameters
    ----------
    overlap : float
        In [0, 1].
    rates : callable
        Fractions of the layers that have not settled.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Memory, Site, rates
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 1], 1.0, shape=(2, 2))
    >>> sites = [Site("w", w, memory=Memory(layer={"overlap": np.array(share)})) for share in (0.5, 0.95)]
    >>> rates.until_settled()(sites, 0.3)
    [0.3, 0.0]
    """
    limit = check_float("overlap", overlap, 0, 1)
    check_function("rates", rates)

    def settled(sites: Sequence[Site], fraction: float) -> list[float]:
        result = asked(rates, sites, fraction)
        for k, site in enumerate(sites):
            if float(site.memory.layer.get(OVERLAP, 0.0)) > limit:
                site.memory.layer[SETTLED] = np.array(True)
            if SETTLED in site.memory.layer:
                result[k] = 0.0
        return result

    return settled


def momentum_guard(sites: Sequence[Site], fraction: float) -> list[float]:
    """Drop less in layers that are nearly full and still growing (sparse momentum).

    A layer of which less than a fifth is empty, and whose share of the mean |momentum| (`mean_shares`) is
    above 1/layers, drops at most the share of its places that is empty. Dettmers & Zettlemoyer, 2019,
    arXiv:1907.04840, in their code; it rounds the number of edges up, too: ``rounded_up(momentum_guard)``.

    Parameters and result are those of `equal`; the optimizer must keep a momentum.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, rates
    >>> from gbnn.weights import Weights
    >>> full = Weights.from_dense(np.ones((3, 3)) - np.diag([1, 0, 0]))
    >>> calm, lively = (Site("w", full, slots={"momentum": np.full(8, m)}) for m in (0.1, 0.7))
    >>> rates.momentum_guard([calm, lively], 0.5)
    [0.5, 0.111...]
    """
    result = []
    for site, share in zip(sites, mean_shares(sites), strict=True):
        growing = share * len(sites) > 1
        empty = site.free / site.places
        result.append(min(fraction, empty) if growing and empty < 0.2 else fraction)
    return result
