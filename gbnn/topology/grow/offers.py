"""Edges that data ask for: functions (site, count, rng) -> at most `count` absent edges, the best first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.edges import canonical_order
from gbnn.errors import check_bool, check_function, check_int
from gbnn.semirings import ActiveProbe
from gbnn.topology.grow.places import first_of_each
from gbnn.topology.grow.strongest import search_absent
from gbnn.topology.moved import ranks_in
from gbnn.topology.seen import seen
from gbnn.topology.site import Site
from gbnn.topology.wire.uniform import constant_fan_out

__all__ = ["Offer", "fan_out", "one_after_another", "strongest"]

Array = np.ndarray[Any, Any]
Pairs = tuple[Array, Array]
Offer = Callable[[Site, int, np.random.Generator], Pairs]

_NONE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
# Derivatives computed together.
_PIECE = 2**20


def strongest(site: Site, count: int, rng: np.random.Generator) -> Pairs:
    """Offer the absent edges of largest |dloss/dw| in this batch, but for those of derivative 0.

    Exact; see `search_absent`. Of a sparse batch only active sources are looked at, so that the cost does not
    depend on the width of the layer.

    Parameters
    ----------
    site : Site
    count : int
    rng : numpy.random.Generator
        Unused.

    Returns
    -------
    sources, targets : ndarray of int64, shape (at most count,)
        Strongest first; none that the layer has.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.rows import SparseRows
    >>> from gbnn.topology.grow.offers import strongest
    >>> model = layers.Linear.random(2**60, 2, nnz=0, bias=False)
    >>> _, pullback = model.forward(SparseRows(np.array([0, 1]), np.array([2**59]), np.ones(1), (1, 2**60)))
    >>> (site,) = topology.sites(model.parameters(), pullback(np.array([[1.0, -3.0]]), inputs=False)[1])
    >>> strongest(site, 5, np.random.default_rng(0))
    (array([576460752303423488, 576460752303423488]), array([1, 0]))
    """
    search = search_absent(site.probe, site.weights.edges, min(count, site.free), fill=False)
    return search.sources, search.targets


def fan_out(edges: int = 8, times: int = 1, *, by_gradient: bool = False) -> Offer:
    """Offer each source that has no edge, and has been active often enough, so many edges.

    The most frequent sources come first, as many as find room with all their edges. Needs
    `topology.seen.count_seen` as `each_step`.

    Parameters
    ----------
    edges : int
        Of a source; all targets, where there are fewer.
    times : int
        Rows in which it must have been active: 2 leaves out what occurs once.
    by_gradient : bool
        To the targets of largest |dloss/dw| in this batch, of sources active in it alone (others wait); else
        to random ones.

    Raises
    ------
    ArgumentError, KindError
        If an argument makes no sense; when growing, if nothing has been counted.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.rows import SparseRows
    >>> from gbnn.topology.grow.offers import fan_out
    >>> model = layers.Linear.random(2**60, 50, nnz=0)
    >>> x = SparseRows(np.array([0, 2, 3]), np.array([5, 2**59, 5]), np.ones(3, np.float32), (2, 2**60))
    >>> y, pullback = model.forward(x)
    >>> (site,) = topology.sites(model.parameters(), pullback(y, inputs=False)[1])
    >>> topology.count_seen()(site, topology.Clock(0), np.random.default_rng(0))
    >>> fan_out(4, times=2)(site, 100, np.random.default_rng(0))[0]
    array([5, 5, 5, 5])
    """
    check_int("edges", edges, 1, 2**40)
    check_int("times", times, 1)
    check_bool("by_gradient", by_gradient)

    def offer(site: Site, count: int, rng: np.random.Generator) -> Pairs:
        ids, counts = seen(site)
        ready = np.flatnonzero(counts >= times)
        each = min(edges, site.weights.out_features)
        if by_gradient and ready.size:
            present = _active(site)
            ready = ready[ranks_in(present, ids[ready]) >= 0]
        ready = ready[np.argsort(-counts[ready], kind="stable")][: count // each]
        if not ready.size:
            return _NONE
        sources = ids[np.sort(ready)]
        if by_gradient:
            return _strongest_out_of(site, sources, each)
        wired = constant_fan_out(rng, (sources.size, site.weights.out_features), sources.size * each)
        return sources[wired.sources], wired.targets.copy()

    return offer


def one_after_another(*offers: Offer) -> Offer:
    """Offer what the first rule does, and where that leaves room, what the next ones do.

    Parameters
    ----------
    *offers : callable

    Examples
    --------
    >>> from gbnn.topology.grow.offers import fan_out, one_after_another, strongest
    >>> rule = one_after_another(fan_out(4), strongest)
    """
    for k, rule in enumerate(offers):
        check_function(f"offers[{k}]", rule)

    def offer(site: Site, count: int, rng: np.random.Generator) -> Pairs:
        sources, targets = _NONE
        for rule in offers:
            if sources.size < count:
                more = rule(site, count, rng)
                sources, targets = np.append(sources, more[0]), np.append(targets, more[1])
                first = first_of_each(sources, targets, site.weights.shape)[:count]
                sources, targets = sources[first], targets[first]
        return sources, targets

    return offer


def _active(site: Site) -> Array:
    """Return the sources active in this batch, ascending."""
    probe = site.probe
    if isinstance(probe, ActiveProbe):
        return np.unique(probe.x.columns)
    return np.flatnonzero(probe.x.any(axis=0))


def _strongest_out_of(site: Site, sources: Array, each: int) -> Pairs:
    """Return the edges of largest |dloss/dw| out of sources that are active and have no edge."""
    probe = site.probe
    if isinstance(probe, ActiveProbe):
        small, ids, others = probe.compact()
    else:
        small, ids, others = probe, np.arange(probe.shape[0]), np.arange(probe.shape[1])
    at, some = ranks_in(ids, sources), min(each, others.size)
    width = max(1, _PIECE // others.size)
    targets = [np.empty((0, some), dtype=np.int64)]
    for start in range(0, at.size, width):
        with np.errstate(all="ignore"):
            strength = np.abs(small.x[:, at[start : start + width]].T @ small.dy)
        targets.append(np.argpartition(-strength, some - 1, axis=1)[:, :some])
    best = others[np.concatenate(targets)]
    grown = np.repeat(sources, some), best.ravel()
    order = canonical_order(*grown, site.weights.shape)
    return grown[0][order], grown[1][order]
