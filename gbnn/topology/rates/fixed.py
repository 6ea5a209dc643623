"""Rates that go by the layers as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gbnn.errors import ArgumentError, check_float, check_function, check_int, check_list
from gbnn.topology.prune.rules import count_of, smallest
from gbnn.topology.scores import Score, checked, size
from gbnn.topology.site import Site

__all__ = [
    "Rates",
    "down_to",
    "equal",
    "given",
    "overall",
    "rising",
    "rounded_up",
]

Rates = Callable[[Sequence[Site], float], list[float]]
"""``(sites, fraction) -> list of float``: the share of its edges that each layer drops, in [0, 1]."""


def equal(sites: Sequence[Site], fraction: float) -> list[float]:
    """Let every layer drop the same share.

    Parameters
    ----------
    sites : sequence of Site
        The layers that take part.
    fraction : float
        What the schedule says, in [0, 1].

    Returns
    -------
    list of float
        A fraction for each layer, in [0, 1].

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import rates
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=9, seed=0), layers.Linear.random(4, 4, nnz=9))
    >>> rates.equal(topology.sites(chain.parameters()), 0.3)
    [0.3, 0.3]
    """
    return [fraction] * len(sites)


def given(factors: Sequence[float], rates: Rates = equal) -> Rates:
    """Multiply each layer's fraction by a factor of its own; more than all edges is all.

    Parameters
    ----------
    factors : sequence of float
        At least 0, one for each layer that takes part.
    rates : callable
        What is multiplied.

    Raises
    ------
    ArgumentError, KindError
        If a factor is none or `rates` no function; when rewiring, if there are not as many layers.

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import rates
    >>> chain = layers.Chain(layers.Linear.random(8, 4, nnz=9, seed=0), layers.Linear.random(4, 4, nnz=9))
    >>> rates.given([0.5, 3.0])(topology.sites(chain.parameters()), 0.4)
    [0.2, 1.0]
    """
    listed = check_list("factors", factors, "a list of numbers, one a layer")
    each = [check_float(f"factors[{k}]", factor, 0) for k, factor in enumerate(listed)]
    check_function("rates", rates)

    def multiplied(sites: Sequence[Site], fraction: float) -> list[float]:
        if len(sites) != len(each):
            raise ArgumentError("factors", f"{len(sites)} numbers, one a layer that takes part", len(each))
        return [
            min(1.0, factor * rate) for factor, rate in zip(each, asked(rates, sites, fraction), strict=True)
        ]

    return multiplied


def rising(low: float = 0.0, high: float = 1.0, rates: Rates = equal) -> Rates:
    """Multiply fractions by factors that go in a straight line from the first layer's to the last one's.

    Later layers build on what the earlier ones send; with low < high these move less, and settle first.
    Layers are counted as `Site.index` has it: all layers with weights, those that do not take part included.
    A network of one layer has the factor `high`. More than all edges is all.

    Parameters
    ----------
    low, high : float
        At least 0: factors of the layer at the input and of that at the output.
    rates : callable
        What is multiplied.

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import rates
    >>> chain = layers.Chain(*(layers.Linear.random(4, 4, nnz=9, seed=k) for k in range(3)))
    >>> rates.rising(0.5, 1.0)(topology.sites(chain.parameters()), 0.4)
    [0.2, 0.3..., 0.4]
    """
    first, last = check_float("low", low, 0), check_float("high", high, 0)
    check_function("rates", rates)

    def multiplied(sites: Sequence[Site], fraction: float) -> list[float]:
        result = []
        for site, rate in zip(sites, asked(rates, sites, fraction), strict=True):
            place = site.index / (site.count - 1) if site.count > 1 else 1.0
            result.append(min(1.0, rate * ((1 - place) * first + place * last)))
        return result

    return multiplied


def overall(score: Score = size, keep: int = 0) -> Rates:
    """Drop that share of the edges of all layers together: those of lowest score, wherever they are.

    The fractions are such that `prune.lowest` with the same score drops exactly these edges: ⌊fraction·nnz⌋
    (`count_of`) in all; at a tie those of the earlier layer, then the earlier ones. Global pruning, as in GMP
    and GraNet.

    Parameters
    ----------
    score : callable
        Scores must be comparable between layers.
    keep : int
        The highest scored edges of each layer that stay in any case, so that no layer is cut off; fewer may
        be dropped in all then.

    Examples
    --------
    >>> from gbnn.topology import Site, rates
    >>> from gbnn.weights import Weights
    >>> weights = (Weights.from_coo([0, 1], [0, 1], v, shape=(2, 2)) for v in ([1, 2], [2, 3]))
    >>> small, large = (Site("w", w) for w in weights)
    >>> rates.overall()([small, large], 0.5), rates.overall(keep=1)([small, large], 0.5)
    ([1.0, 0.0], [0.5, 0.5])
    """
    check_function("score", score)
    check_int("keep", keep, 0)

    def globally(sites: Sequence[Site], fraction: float) -> list[float]:
        may_go, count = [], count_of(fraction, sum(site.weights.nnz for site in sites))
        for site in sites:
            of_edges = checked(score, site)
            may_go.append(of_edges[smallest(of_edges, of_edges.size - keep)])
        sizes = [some.size for some in may_go]
        gone = smallest(np.concatenate([np.empty(0, dtype=np.float32), *may_go]), count)
        counts = np.bincount(np.repeat(np.arange(len(sites)), sizes)[gone], minlength=len(sites))
        return shares_of(sites, counts.tolist())

    return globally


def down_to(share: float | None = None, rates: Rates | None = None) -> Rates:
    """Drop what leaves a share of all places, in each layer or of all layers together.

    Of a layer (or all layers) with in x out places, ⌊share·places⌋ edges are left (`count_of`); where there
    are fewer already, none go. MEST prunes so before it grows.

    Parameters
    ----------
    share : float, optional
        In [0, 1]. None: the schedule's fraction is the share that is left.
    rates : callable, optional
        None: every layer comes down to this share of its own places. Else how the fraction that all layers
        together have to drop is divided among them: by `overall`, exactly; by `equal`, all but roundings.

    Examples
    --------
    >>> from gbnn.topology import Site, rates
    >>> from gbnn.weights import Weights
    >>> weights = (Weights.from_coo([0, 1], [0, 1], v, shape=(2, 2)) for v in ([1, 2], [2, 3]))
    >>> small, large = (Site("w", w) for w in weights)
    >>> rates.down_to(0.25)([small, large], 0.0), rates.down_to(0.25, rates.overall())([small, large], 0.0)
    ([0.5, 0.5], [1.0, 0.0])
    """
    if share is not None:
        check_float("share", share, 0, 1)
    if rates is not None:
        check_function("rates", rates)

    def down(sites: Sequence[Site], fraction: float) -> list[float]:
        left = fraction if share is None else share
        if rates is None:
            return shares_of(sites, [s.weights.nnz - _left(left, s.places, s.weights.nnz) for s in sites])
        nnz = sum(site.weights.nnz for site in sites)
        gone = nnz - _left(left, sum(site.places for site in sites), nnz)
        return asked(rates, sites, gone / nnz if nnz else 0.0)

    return down


def rounded_up(rates: Rates = equal) -> Rates:
    """Round the number of edges that each layer drops up, where rules round it down.

    Parameters
    ----------
    rates : callable

    Examples
    --------
    >>> from gbnn.topology import Site, rates
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], 1.0, shape=(4, 1)))
    >>> rates.rounded_up()([site], 0.3)
    [0.5]
    """
    check_function("rates", rates)

    def up(sites: Sequence[Site], fraction: float) -> list[float]:
        counts = []
        for site, rate in zip(sites, asked(rates, sites, fraction), strict=True):
            # As `count_of`: what is an integer but for rounding is that integer.
            counts.append(math.ceil(rate * site.weights.nnz * (1 - 2**-50)))
        return shares_of(sites, counts)

    return up


def asked(rates: Rates, sites: Sequence[Site], fraction: float) -> list[float]:
    """Return what a function of rates says of these layers, or raise unless it is a fraction for each."""
    each = check_list("rates", rates(sites, fraction), "a list of fractions, one a layer")
    if len(each) != len(sites):
        raise ArgumentError("rates", f"{len(sites)} fractions, one a layer", len(each))
    return [check_float(f"rates[{k}]", rate, 0, 1) for k, rate in enumerate(each)]


def shares_of(sites: Sequence[Site], counts: Sequence[int]) -> list[float]:
    """Return the fractions of which `count_of` makes these counts."""
    return [count / site.weights.nnz if count else 0.0 for site, count in zip(sites, counts, strict=True)]


def _left(share: float, places: int, nnz: int) -> int:
    """Return how many of `nnz` edges stay to leave a share of all places."""
    return min(nnz, count_of(share, places))
