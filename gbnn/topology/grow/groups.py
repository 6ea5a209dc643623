"""N:M sparsity: growth that leaves every group of M consecutive inputs of a neuron as full as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, NonFiniteError, check_function, check_int, check_real
from gbnn.topology.grow.places import sorted_distinct
from gbnn.topology.grow.rules import Grow
from gbnn.topology.moved import at_edges
from gbnn.topology.prune.rules import Prune, count_of
from gbnn.topology.scores import checked, size
from gbnn.topology.site import Site

__all__ = ["MAX_GROUP", "Merit", "by_chance", "by_gradient", "in_groups", "weakest_in_groups"]

Array = np.ndarray[Any, Any]
Merit = Callable[[Site, Array, Array, np.random.Generator], Array]
"""``(site, sources, targets, rng) -> ndarray of float, shape (k,)``: the highest are grown."""

MAX_GROUP = 2**20
"""The largest group: all its places are looked at together."""

# Places of the groups looked at in one go.
_BLOCK = 2**18


def by_gradient(site: Site, sources: Array, targets: Array, rng: np.random.Generator) -> Array:
    """Rate places by |dloss/dw| (as RigL does): for `in_groups`; the layer must be a plus_times one.

    Parameters
    ----------
    site : Site
    sources, targets : ndarray of int64, shape (k,)
        Places without a kept edge.
    rng : numpy.random.Generator
        Unused.

    Returns
    -------
    ndarray of float, shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology.grow.groups import by_gradient
    >>> model = layers.Linear.from_dense(np.diag([1.0, 2.0]))
    >>> _, pullback = model.forward(np.array([[1.0, 5.0]]))
    >>> (site,) = topology.sites(model.parameters(), pullback(np.array([[1.0, -2.0]]))[1])
    >>> by_gradient(site, np.array([0, 1]), np.array([1, 0]), np.random.default_rng(0))
    array([2., 5.])
    """
    merit: Array = np.abs(at_edges(site.probe, sources, targets))
    return merit


def by_chance(site: Site, sources: Array, targets: Array, rng: np.random.Generator) -> Array:
    """Rate places at random, those of edges just dropped below all others (as SET does): for `in_groups`.

    Parameters and result are those of `by_gradient`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.groups import by_chance
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(1, 2)))
    >>> by_chance(site, np.array([0, 0]), np.array([0, 1]), np.random.default_rng(0)) > 0
    array([False,  True])
    """
    return rng.random(sources.size) - (site.weights.edges.find(sources, targets) >= 0)


def in_groups(m: int, by: Merit = by_gradient) -> Grow:
    """Grow in each group of `m` consecutive inputs of a neuron as many edges as were dropped there.

    So a layer of N:M sparsity (at most N edges in every such group) stays one, and one of exactly N stays so,
    whatever was dropped. If `m` does not divide in_features, the last group is shorter. Of a group's places
    without a kept edge the ones of highest merit are taken, at a tie the smaller source. Those just dropped
    compete like any other, unless the merit says otherwise (`by_chance`).

    N:M: Mishra et al., 2021, "Accelerating sparse deep neural networks"; Zhou et al., 2021, "Learning N:M
    fine-grained structured sparse neural networks from scratch". Growth within the group by the gradient is
    RigL's rule, group by group.

    Parameters
    ----------
    m : int
        From 1 to 2**20.
    by : callable
        `by_gradient`, `by_chance` or one of your own: ``(site, sources, targets, rng) -> merit``.

    Returns
    -------
    Grow
        Time is O(nnz + d·m) for d dropped edges, memory O(nnz + m), for shapes up to 2**60 x 2**60.

    Raises
    ------
    ArgumentError, KindError
        If `m` is out of range or `by` no function; when growing, if `count` is not the number of dropped
        edges, or `by` does not return one number a place.
    NonFiniteError
        When growing, if a merit is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.groups import by_chance, in_groups
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1, 2], [0, 0, 0], 1.0, shape=(4, 1)))
    >>> in_groups(2, by_chance)(site, np.array([2]), 1, np.random.default_rng(0))
    (array([3]), array([0]))
    """
    m = check_int("m", m, 1, MAX_GROUP)
    check_function("by", by)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        if count != len(dropped):
            wanted = f"{len(dropped)}, as many as were dropped, for each group grows what it lost"
            raise ArgumentError("count", wanted, count)
        grown = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
        for sources, targets, free, needed in _touched(site, dropped, m):
            merit = np.full(free.shape, -np.inf)  # what is not free comes last
            of_places = check_real("merits (by)", by(site, sources[free], targets[free], rng))
            if of_places.shape != sources[free].shape:
                raise ArgumentError(
                    "merits (by)", f"shape {sources[free].shape}, one a place", of_places.shape
                )
            if not np.isfinite(of_places).all():
                raise NonFiniteError("growth in groups", "finite merits", "others")
            merit[free] = of_places
            order = np.argsort(-merit, axis=1, kind="stable")
            group, rank = np.nonzero(np.arange(free.shape[1]) < needed[:, None])
            best = group, order[group, rank]
            grown.append((sources[best], targets[best]))
        sources, targets = (np.concatenate(side) for side in zip(*grown, strict=True))
        return sources, targets

    return grow


def _touched(site: Site, dropped: Array, m: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield the groups that lost edges, some at a time.

    Each time arrays of shape (groups, m), sources, targets and which places have no kept edge, and how many
    edges each group lost, shape (groups,).
    """
    edges = site.weights.edges
    rows = edges.shape[0]
    kept = site.kept(dropped)
    hit = edges.sources[dropped] // m, edges.targets[dropped]
    groups = Edges(*sorted_distinct(*hit, edges.shape), edges.shape)
    lost = np.bincount(groups.find(*hit), minlength=groups.nnz)
    at_once = max(1, _BLOCK // m)
    for start in range(0, groups.nnz, at_once):
        these = slice(start, start + at_once)
        sources = groups.sources[these, None] * m + np.arange(min(m, rows))
        targets = np.broadcast_to(groups.targets[these, None], sources.shape)
        free = sources < rows  # the last group may be shorter
        free[free] = kept.find(sources[free], targets[free]) < 0
        yield sources, targets, free, lost[these]


def weakest_in_groups(m: int) -> Prune:
    """Drop the edges of smallest |w| within each group of `m` consecutive inputs of a neuron.

    ⌊fraction·nnz⌋ edges go in all. A group loses the same share of its edges as any other, to within one
    edge; which groups lose the odd ones is drawn anew each time. (Any other prune rule goes with `in_groups`
    as well: this one spreads the losses evenly.)

    Parameters
    ----------
    m : int
        From 1 to 2**20.

    Returns
    -------
    Prune
        Positions in canonical order, ascending; at a tie the smaller source goes.

    Raises
    ------
    ArgumentError, KindError
        If `m` is out of range; when pruning, if `fraction` is not from 0 to 1.
    NonFiniteError
        When pruning, if a weight is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.groups import weakest_in_groups
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [9.0, 8.0, 1.0, -2.0], shape=(4, 1))
    >>> weakest_in_groups(2)(Site("w", w), 0.5, np.random.default_rng(0))
    array([1, 2])
    """
    m = check_int("m", m, 1, MAX_GROUP)

    def prune(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        weights = site.weights
        count_of(fraction, weights.nnz)  # refuses what is no fraction
        hit = weights.sources // m, weights.targets
        groups = Edges(*sorted_distinct(*hit, weights.shape), weights.shape)
        own = groups.find(*hit)
        # By group, then by weight. One key sorts several times faster than two; ranks are unique.
        rank = np.empty(weights.nnz, dtype=np.int64)
        rank[np.argsort(checked(size, site), kind="stable")] = np.arange(weights.nnz)
        order = np.argsort(own * weights.nnz + rank)
        held = np.bincount(own, minlength=groups.nnz)
        begin = np.cumsum(held) - held
        # Rounding down what the groups up to this one lose together gives each its share to within one, and
        # all of them together the exact number. In a random order, so that the odd ones are anybody's.
        turn = rng.permutation(held.size)
        loss = np.empty_like(held)
        so_far = np.cumsum(held[turn])
        upto = (fraction * so_far * (1 + 2**-50)).astype(np.int64)  # `count_of`, of all at once
        loss[turn] = np.diff(np.minimum(upto, so_far), prepend=0)
        place = np.arange(order.size) - np.repeat(begin, held)
        return np.sort(order[place < np.repeat(loss, held)])

    return prune
