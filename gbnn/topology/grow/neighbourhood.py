"""Growth near by: within a distance, within a block of neurons, or a small world of near and far edges."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, check_float, check_int
from gbnn.topology.grow.places import check_room, drawn_until, filled
from gbnn.topology.grow.rules import Grow
from gbnn.topology.site import Site

__all__ = ["local", "same_block", "small_world"]

Array = np.ndarray[Any, Any]
# The neighbours of neurons on the shorter side of a layer: (neurons, short, long) -> the first neighbour of
# each on the longer side and how many it has. They lie side by side, beyond the last comes the first again.
Window = Callable[[Array, int, int], tuple[Array, Array]]


def local(radius: float, *, ring: bool = False) -> Grow:
    """Grow at random among edges (i, j) with |i/in - j/out| <= radius: near the diagonal.

    Uniform among the free places of the neighbourhood that were empty before this rewiring. If those do not
    suffice, the rest is filled up uniformly anywhere; just-dropped edges are taken only where there is no
    other place.

    Parameters
    ----------
    radius : float
        In (0, 1]: the distance as a share of a side. A radius that is off in its last bits (0.3) counts as
        the number meant.
    ring : bool
        Whether the neurons of each side lie on a ring, so that the last are next to the first: the distance
        is then d or 1 - d, whichever is less.

    Returns
    -------
    Grow
        Time and memory are O(nnz + count), for shapes up to 2**60 x 2**60. Only a neighbourhood that is
        nearly full is listed, in O(min(in, out) + nnz + count); where min(in, out) is more than both 2**20
        and nnz + count it is not, and the rest is filled up anywhere.

    Raises
    ------
    ArgumentError, KindError
        If `radius` is out of range or no number; when growing, if `count` is more than the free places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.neighbourhood import local
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(100, 10)))
    >>> sources, targets = local(0.1)(site, np.array([0]), 50, np.random.default_rng(0))
    >>> int(np.abs(sources - 10 * targets).max())
    10
    """
    radius = check_float("radius", radius, 0, 1, open_low=True)
    return _grow_in(lambda site: _diagonal(radius, ring))


def same_block(n: int) -> Grow:
    """Divide the neurons of each side into `n` blocks and grow at random inside block k x block k.

    Source i is in block ⌊i·n/in⌋, target j in block ⌊j·n/out⌋: blocks of a side differ by one neuron at most.
    A layer that has edges only inside blocks stays that way while there is room; what does not fit is filled
    up as `local` does.

    Parameters
    ----------
    n : int
        Number of blocks, at most as many as either side has neurons.

    Returns
    -------
    Grow
        Time and memory are those of `local`.

    Raises
    ------
    ArgumentError, KindError
        If `n` is less than 1; when growing, if it is more than a side has neurons or `count` is more than the
        free places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.neighbourhood import same_block
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(4, 6)))
    >>> sources, targets = same_block(2)(site, np.array([0]), 11, np.random.default_rng(0))
    >>> np.array_equal(sources // 2, targets // 3)
    True
    """
    n = check_int("n", n, 1)

    def window(neurons: Array, short: int, long: int) -> tuple[Array, Array]:
        neurons = _roomy(neurons, max(short, long) * (n + 1))
        block = neurons * n // short
        first = -(-block * long // n)
        return _int64(first), _int64(-(-(block + 1) * long // n) - first)

    def of(site: Site) -> Window:
        if n > min(site.weights.shape):
            rows, columns = site.weights.shape
            raise ArgumentError("n", f"at most as many blocks as neurons, {rows} and {columns}", n)
        return window

    return _grow_in(of)


def small_world(p: float = 0.1, *, radius: float | None = None, ring: bool = True) -> Grow:
    """Grow near by, as `local` does, but each edge with probability `p` anywhere.

    After Watts and Strogatz, 1998, "Collective dynamics of small-world networks": a lattice of near edges
    with a share `p` of far ones, on a bipartite graph. What "anywhere" draws may be near by, too.

    Parameters
    ----------
    p : float
        In [0, 1]. At 0 this is `local`, at 1 `topology.random`.
    radius, ring :
        Those of `local`. A radius of None is the layer's density: the neighbourhood has then about twice as
        many places as the layer has edges.

    Returns
    -------
    Grow
        Time and memory are those of `local`.

    Raises
    ------
    ArgumentError, KindError
        If `p` or `radius` is out of range or no number; when growing, if `count` is more than the free
        places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.neighbourhood import small_world
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(100, 100)))
    >>> sources, targets = small_world(0.2, radius=0.05)(site, np.array([0]), 100, np.random.default_rng(0))
    >>> around = np.abs(sources - targets)
    >>> 70 < int(np.count_nonzero(np.minimum(around, 100 - around) <= 5)) < 95
    True
    """
    p = check_float("p", p, 0, 1)
    if radius is not None:
        radius = check_float("radius", radius, 0, 1, open_low=True)

    def of(site: Site) -> Window:
        return _diagonal(site.weights.density if radius is None else radius, ring)

    return _grow_in(of, p)


def _grow_in(of: Callable[[Site], Window], far: float = 0.0) -> Grow:
    """Return the rule that grows in a neighbourhood, each edge with probability `far` anywhere."""

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        check_room(site, dropped, count)
        near = count - int(rng.binomial(count, far))
        chosen = _inside(of(site), site.weights.edges, near, rng)
        return filled(site, dropped, chosen, count, rng)

    return grow


def _diagonal(radius: float, ring: bool) -> Window:
    """Return the window |a/short - b/long| <= radius; in integers |a·long - b·short| <= radius·short·long."""

    def window(neurons: Array, short: int, long: int) -> tuple[Array, Array]:
        # A few units in the last place up: 0.3 is a little less than 3/10.
        reach = int(Fraction(radius) * short * long * (1 + Fraction(1, 2**50)))
        neurons = _roomy(neurons, 2 * short * long)
        first = -((reach - neurons * long) // short)
        last = (neurons * long + reach) // short
        if ring:
            return _int64(first % long), _int64(np.minimum(last - first + 1, long))
        first = np.maximum(first, 0)
        return _int64(first), _int64(np.maximum(np.minimum(last, long - 1) - first + 1, 0))

    return window


def _roomy(array: Array, largest: int) -> Array:
    """Return the integers as they are, or as Python's where products with them overflow int64."""
    return array if largest < 2**62 else array.astype(object)


def _int64(array: Array) -> Array:
    return array.astype(np.int64, copy=False)


def _inside(window: Window, edges: Edges, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw up to `count` of the neighbourhood's absent edges, uniformly."""
    # Windows are taken along the longer side: along the shorter one most would be empty.
    short, long = sorted(edges.shape)
    # All windows differ by one place, but for those cut off at a corner: these are no wider than half.
    widest = int(window(np.array([short // 2]), short, long)[1][0]) + 1

    def pairs(near: Array, other: Array) -> tuple[Array, Array]:
        return (near, other) if edges.shape[0] == short else (other, near)

    def draw(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        near = rng.integers(short, size=2 * n)
        first, width = window(near, short, long)
        step = rng.integers(widest, size=2 * n)
        inside = step < width
        return pairs(near[inside], (first[inside] + step[inside]) % long)

    chosen = drawn_until(draw, edges, count, rng)
    if chosen[0].size == count or short > max(2**20, edges.nnz + count):
        return chosen
    # Nearly full, or nearly empty of places: list those that are free.
    near = np.arange(short)
    first, width = window(near, short, long)
    ends = np.cumsum(width)
    step = np.arange(ends[-1]) - np.repeat(ends - width, width)
    sources, targets = pairs(np.repeat(near, width), (np.repeat(first, width) + step) % long)
    free = rng.permutation(np.flatnonzero(edges.find(sources, targets) < 0))[:count]
    return sources[free], targets[free]
