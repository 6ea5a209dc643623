"""Growth by preferential attachment: who has many edges gets more."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import check_float
from gbnn.topology.grow.places import check_room, drawn_until, filled
from gbnn.topology.grow.rules import Grow
from gbnn.topology.site import Site

__all__ = ["preferential"]

Array = np.ndarray[Any, Any]


def preferential(offset: float = 1.0) -> Grow:
    """Draw a new edge's source in proportion to fan-out + `offset`, its target to fan-in + `offset`.

    The fans are those of the kept graph. Edges are drawn one after the other without replacement: the next
    one among the places that were empty before this rewiring, each in proportion to the product of its ends'
    weights. Where 50 rounds of drawing do not suffice (`offset` near 0, where few neurons have any chance
    and those are full), the rest is filled up uniformly; just-dropped edges are taken only where there is no
    other place.

    Barabási and Albert, 1999, "Emergence of scaling in random networks", on a bipartite graph of fixed size;
    the offset is the initial attractiveness of Dorogovtsev, Mendes and Samukhin, 2000.

    Parameters
    ----------
    offset : float
        At least 0: what a neuron without edges weighs. The larger, the more even.

    Returns
    -------
    Grow
        Time and memory are O(nnz + count), for shapes up to 2**60 x 2**60.

    Raises
    ------
    ArgumentError, KindError
        If `offset` is negative or no number; when growing, if `count` is more than the free places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.attachment import preferential
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 0, 1], [0, 1, 0], 1.0, shape=(4, 4)))
    >>> preferential(offset=0.0)(site, np.array([], dtype=int), 1, np.random.default_rng(0))
    (array([1]), array([1]))
    """
    offset = check_float("offset", offset, 0)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        empty = check_room(site, dropped, count)
        edges, kept = site.weights.edges, site.kept(dropped)
        if empty <= 3 * count:
            chosen = _race(edges, kept, offset, count, rng)
        else:
            ends = kept.sources, kept.targets

            def draw(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
                return _ends(ends[0], edges.shape[0], offset, n, rng), _ends(
                    ends[1], edges.shape[1], offset, n, rng
                )

            chosen = drawn_until(draw, edges, count, rng)
        return filled(site, dropped, chosen, count, rng)

    return grow


def _ends(held: Array, size: int, offset: float, n: int, rng: np.random.Generator) -> Array:
    """Draw `n` neurons in proportion to how often each is among `held`, plus `offset`.

    The end of a random edge is a neuron in proportion to its edges: no table of all neurons is needed.
    """
    everyone = offset * size
    if not held.size or (by_edge := held.size / (held.size + everyone)) == 0:
        return rng.integers(size, size=n)
    return np.where(
        rng.random(n) < by_edge, held[rng.integers(held.size, size=n)], rng.integers(size, size=n)
    )


def _race(
    edges: Edges, kept: Edges, offset: float, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw without replacement among all absent places, which are few.

    Each place finishes at an exponential time of rate its weight: the first `count` are such a draw
    (Efraimidis and Spirakis, 2006). Places of weight 0 never finish.
    """
    rows, columns = edges.shape
    places = np.delete(np.arange(rows * columns), edges.sources * columns + edges.targets)
    sources, targets = places // columns, places % columns
    out_of = np.bincount(kept.sources, minlength=rows) + offset
    into = np.bincount(kept.targets, minlength=columns) + offset
    weight = out_of[sources] * into[targets]
    time = rng.standard_exponential(places.size)
    possible = np.flatnonzero(weight > 0)
    first = possible[np.argsort(time[possible] / weight[possible], kind="stable")[:count]]
    return sources[first], targets[first]
