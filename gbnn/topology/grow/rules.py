"""Grow rules: which edges a layer gets. Functions (site, dropped, count, rng) -> (sources, targets)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.sampling import distinct_edges
from gbnn.topology.grow.places import check_room
from gbnn.topology.grow.strongest import search_absent
from gbnn.topology.site import Site

__all__ = ["Grow", "gradient", "random"]

Array = np.ndarray[Any, Any]
Grow = Callable[[Site, Array, int, np.random.Generator], tuple[Array, Array]]


def random(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Grow `count` edges uniformly among the places that were empty before this rewiring (SET).

    An edge just dropped is taken again only where a nearly full layer has too few other places.

    Parameters
    ----------
    site : Site
    dropped : ndarray of int64
        Positions of the edges that go in this rewiring.
    count : int
        At most the free places, those of the dropped edges included.
    rng : numpy.random.Generator

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,)

    Raises
    ------
    ArgumentError
        If `count` is more than that.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, random
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 1], 1.0, shape=(2, 2))
    >>> sources, targets = random(Site("w", w), np.array([0]), 2, np.random.default_rng(0))
    >>> sorted(zip(sources.tolist(), targets.tolist()))
    [(0, 1), (1, 0)]
    """
    edges = site.weights.edges
    elsewhere = min(count, check_room(site, dropped, count))
    sources, targets = distinct_edges(rng, edges.shape, elsewhere, exclude=edges, ordered=True)
    if elsewhere == count:
        return sources, targets
    again = rng.permutation(dropped)[: count - elsewhere]
    return np.append(sources, edges.sources[again]), np.append(targets, edges.targets[again])


def gradient(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Grow the `count` edges of largest |dloss/dw| among all not kept (RigL; Evci et al., 2020).

    Edges just dropped compete like any other. Exact: see `strongest_absent`. Parameters and result are
    those of `random`; the layer must be a plus_times one. ``site.memory.layer["visited"]`` becomes the
    share of all in x out pairs whose derivative was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.from_dense(np.diag([1.0, 2.0]))
    >>> _, pullback = model.forward(np.array([[1.0, 5.0]]))
    >>> _, gradients = pullback(np.array([[1.0, 2.0]]))
    >>> (site,) = topology.sites(model.parameters(), gradients)
    >>> topology.gradient(site, np.array([0]), 1, np.random.default_rng(0))
    (array([1]), array([0]))
    >>> site.memory.layer["visited"]
    array(1.)
    """
    search = search_absent(site.probe, site.kept(dropped), count)
    site.memory.layer["visited"] = np.array(search.visited)
    return search.sources, search.targets
