"""Growth by swapping ends: every neuron keeps exactly its number of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, check_int
from gbnn.topology.grow.places import first_of_each
from gbnn.topology.grow.rules import Grow
from gbnn.topology.site import Site

__all__ = ["swapped"]

Array = np.ndarray[Any, Any]


def swapped(tries: int = 20) -> Grow:
    """Match the dropped edges' sources anew with their targets: no fan-in and no fan-out changes.

    A random matching; edges of it that the layer had before this rewiring, or that come twice, are mended:
    they take their old places, and from there swap targets with others, at random, where both new edges are
    then free. One that finds no partner stays at its old place: it is a just-dropped edge grown again.

    The double edge swap of the configuration model (Maslov and Sneppen, 2002, "Specificity and stability in
    topology of protein networks"), for all dropped edges at once.

    Parameters
    ----------
    tries : int
        Rounds of swaps for those at their old places; they end early once three change nothing.

    Returns
    -------
    Grow
        Time is O(tries·d·log nnz) for d dropped edges, memory O(nnz), for shapes up to 2**60 x 2**60.

    Raises
    ------
    ArgumentError, KindError
        If `tries` is less than 0; when growing, if `count` is not the number of dropped edges.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.swaps import swapped
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1, 2], [0, 1, 2], 1.0, shape=(3, 3)))
    >>> swapped()(site, np.array([0, 2]), 2, np.random.default_rng(0))
    (array([0, 2]), array([2, 0]))
    """
    tries = check_int("tries", tries, 0)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        if count != len(dropped):
            wanted = f"{len(dropped)}, as many as were dropped, for swaps keep the fans"
            raise ArgumentError("count", wanted, count)
        edges = site.weights.edges
        sources, targets = edges.sources[dropped], edges.targets[dropped]
        partner = _matching(edges, sources, targets, rng)
        fruitless = 0
        for _ in range(tries):
            home = partner == np.arange(count)
            if not home.any() or fruitless == 3:
                break
            moved = _swap(edges, sources, targets, partner, home, rng)
            fruitless = 0 if moved else fruitless + 1
        return sources, targets[partner]

    return grow


def _matching(edges: Edges, sources: Array, targets: Array, rng: np.random.Generator) -> Array:
    """Return whose target each source gets: a random permutation without impossible edges.

    An edge is at home where it gets its own target: always possible. Another is possible if the layer had no
    such edge, and the first of its kind.
    """
    count = sources.size
    partner = rng.permutation(count)
    everyone = np.arange(count)
    while True:
        away = np.flatnonzero(partner != everyone)
        ends = sources[away], targets[partner[away]]
        possible = edges.find(*ends) < 0
        first = np.zeros(away.size, dtype=bool)
        first[first_of_each(*ends, edges.shape)] = True
        # Of two that are the same edge only the second goes; one the layer had goes in any case.
        bad = away[~(possible & first)]
        if not bad.size:
            return partner
        partner = _homed(partner, bad)


def _homed(partner: Array, home: Array) -> Array:
    """Give these their own targets; who had those gets what they had (they leave their cycles)."""
    everyone = np.arange(partner.size)
    onward = everyone.copy()
    onward[home] = partner[home]
    # Follow a chain of such until one that is none, in steps that double. A cycle of none but such has no
    # end, and nobody outside it that would ask.
    for _ in range(int(home.size).bit_length()):
        onward = onward[onward]
    partner = onward[partner]
    partner[home] = home
    return partner


def _swap(
    edges: Edges, sources: Array, targets: Array, partner: Array, home: Array, rng: np.random.Generator
) -> int:
    """Let edges at home swap targets with random others where both are possible then; return how many."""
    count = partner.size
    order = rng.permutation(count)
    order = order[np.argsort(~home[order], kind="stable")]  # those at home first, so that each has a turn
    half = count // 2
    one, other = order[:half], order[half : 2 * half]
    take = home[one]
    one, other = one[take], other[take]
    new_sources = np.concatenate([sources[one], sources[other]])
    new_targets = np.concatenate([targets[partner[other]], targets[partner[one]]])
    now_sources = np.append(sources, new_sources)
    now_targets = np.append(targets[partner], new_targets)
    good = np.zeros(now_sources.size, dtype=bool)
    good[first_of_each(now_sources, now_targets, edges.shape)] = True
    good = good[count:] & (edges.find(new_sources, new_targets) < 0)
    both = good[: one.size] & good[one.size :]
    one, other = one[both], other[both]
    partner[one], partner[other] = partner[other], partner[one]
    return int(one.size)
