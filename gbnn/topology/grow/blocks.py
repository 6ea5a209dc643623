"""Block sparsity: whole blocks of neighbouring weights are dropped and grown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gbnn.edges import MAX_FEATURES, Edges
from gbnn.errors import ArgumentError, NonFiniteError, check_function, check_int
from gbnn.sampling import MAX_EDGES
from gbnn.semirings import Probe
from gbnn.topology.grow.candidates import Distribution, check_candidates, drawn, grabo, weights_by
from gbnn.topology.grow.places import filled, sorted_distinct
from gbnn.topology.grow.rules import Grow
from gbnn.topology.prune.rules import Prune, count_of, smallest
from gbnn.topology.scores import checked, size
from gbnn.topology.site import Site
from gbnn.weights import Weights

__all__ = ["EXACT_PLACES", "expanded", "gradient_blocks", "random_blocks", "weakest_blocks"]

Array = np.ndarray[Any, Any]
Block = int | tuple[int, int]

EXACT_PLACES = 2**30
"""Places in x out up to which `gradient_blocks` looks at every block, unless told otherwise."""

# Derivatives held at a time.
_PIECE = 2**18


def expanded(blocks: Edges, b: Block) -> Edges:
    """Return the edges of a graph of blocks: each of its edges (i, j) becomes a full b x b block.

    Parameters
    ----------
    blocks : Edges
        Shape (in / b, out / b).
    b : int or (int, int)
        Neurons of a block on both sides, or on the source and on the target side.

    Returns
    -------
    Edges
        Shape (in, out), the blocks' area times as many edges.

    Examples
    --------
    >>> from gbnn.edges import Edges
    >>> from gbnn.topology.grow.blocks import expanded
    >>> edges = expanded(Edges.from_coo([1], [0], (2, 2))[0], (1, 2))
    >>> edges.shape, edges.sources, edges.targets
    ((2, 4), array([1, 1]), array([0, 1]))
    """
    high, wide = _sides(b)
    shape = blocks.shape[0] * high, blocks.shape[1] * wide
    check_int("edges of the blocks", blocks.nnz * high * wide, 0, MAX_EDGES)
    return Edges.from_coo(*_places(blocks.sources, blocks.targets, high, wide), shape)[0]


def weakest_blocks(b: Block) -> Prune:
    """Drop whole blocks: the ⌊fraction·blocks⌋ of smallest Σ|w|.

    The layer must consist of full b x b blocks (`expanded` makes such edges). Blocks as the unit of
    pruning: Narang, Undersander and Diamos, 2017, "Block-sparse recurrent neural networks"; Σ|w| is
    their mean as Zhu and Gupta's pruning library pools it.

    Parameters
    ----------
    b : int or (int, int)
        Neurons of a block on both sides, or on the source and on the target side.

    Returns
    -------
    Prune
        Positions in canonical order, ascending; at a tie the block with the smaller (source, target) goes.

    Raises
    ------
    ArgumentError, KindError
        If `b` is less than 1; when pruning, if it does not divide the layer or the edges are no full blocks.
    NonFiniteError
        When pruning, if a weight is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.blocks import weakest_blocks
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_dense(np.array([[1.0, -9.0, 0.0, 0.0], [0.0, 0.0, -2.0, 7.0]]))
    >>> weakest_blocks((1, 2))(Site("w", w), 0.5, np.random.default_rng(0))
    array([2, 3])
    """
    high, wide = _sides(b)

    def prune(site: Site, fraction: float, rng: np.random.Generator) -> Array:
        edges = site.weights.edges
        blocks = _blocks(site, edges, high, wide)
        own = blocks.find(edges.sources // high, edges.targets // wide)
        norms = np.bincount(own, weights=checked(size, site), minlength=blocks.nnz)
        gone = np.zeros(blocks.nnz, dtype=bool)
        gone[smallest(norms, count_of(fraction, blocks.nnz))] = True
        return np.flatnonzero(gone[own])

    return prune


def random_blocks(b: Block) -> Grow:
    """Grow whole blocks, uniformly among those that were empty before this rewiring.

    A block just dropped is taken again only where there is no other.

    Parameters
    ----------
    b : int or (int, int)
        Neurons of a block on both sides, or on the source and on the target side.

    Returns
    -------
    Grow
        Time and memory are O(nnz), for shapes up to 2**60 x 2**60. Edges come block by block.

    Raises
    ------
    ArgumentError, KindError
        If `b` is less than 1; when growing, if it does not divide the layer, the edges before or after the
        drop are no full blocks, or `count` is not whole blocks or is more than the free places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.blocks import random_blocks
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 0], [0, 1], 1.0, shape=(2, 2)))
    >>> random_blocks((1, 2))(site, np.array([], dtype=int), 2, np.random.default_rng(0))
    (array([1, 1]), array([0, 1]))
    """
    high, wide = _sides(b)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        coarse, gone, number = _coarse(site, dropped, count, high, wide)
        return _places(*filled(coarse, gone, _NONE, number, rng), high, wide)

    return grow


def gradient_blocks(
    b: Block, candidates: float | int | None = None, distribution: Distribution = grabo
) -> Grow:
    """Grow the whole blocks of largest Σ|dloss/dw|.

    Blocks just dropped compete like any other where all blocks are looked at (RigL with blocks for edges). A
    larger layer samples candidates, as `sampled_gradient` does, among the blocks that were empty before;
    what they do not yield is filled up at random.

    Parameters
    ----------
    b : int or (int, int)
        Neurons of a block on both sides, or on the source and on the target side.
    candidates : float, int or None
        How many blocks are drawn: a float is a multiple of the layer's blocks, an int their number. None
        looks at every block of a layer of at most 2**30 places, and is 1.0 for a larger one.
    distribution : callable
        Weights of the neurons, see `sampled_gradient`; a block's are the sums of theirs.

    Returns
    -------
    Grow
        For plus_times layers. Memory is O(nnz + in + out + candidates), and one piece of in x b derivatives
        where all blocks are looked at. Edges come block by block.

    Raises
    ------
    ArgumentError, KindError
        Those of `random_blocks`, and those of `sampled_gradient` about `candidates` and `distribution`.
    NonFiniteError
        When growing, if a derivative looked at is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology.grow.blocks import gradient_blocks
    >>> model = layers.Linear.from_dense(np.array([[1.0, 1.0, 0.0, 0.0]] * 2))
    >>> _, pullback = model.forward(np.array([[1.0, 5.0]]))
    >>> (site,) = topology.sites(model.parameters(), pullback(np.array([[0.0, 0.0, 2.0, -1.0]]))[1])
    >>> gradient_blocks((1, 2))(site, np.array([], dtype=int), 2, np.random.default_rng(0))
    (array([1, 1]), array([2, 3]))
    """
    high, wide = _sides(b)
    budget = None if candidates is None else check_candidates(candidates)
    check_function("distribution", distribution)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        coarse, gone, number = _coarse(site, dropped, count, high, wide)
        rows, columns = site.weights.shape
        if budget is None and rows * columns <= EXACT_PLACES:
            best = _strongest(site.dense_probe, coarse.kept(gone), number, high, wide)
            return _places(*best, high, wide)
        blocks = coarse.weights.edges
        pairs = budget(blocks.nnz) if budget is not None else blocks.nnz
        sources, targets = weights_by(distribution, site, rng)
        sums = sources.reshape(-1, high).sum(axis=1), targets.reshape(-1, wide).sum(axis=1)
        i, j = sorted_distinct(*drawn(sums, blocks.shape, pairs, rng), blocks.shape)
        new = blocks.find(i, j) < 0
        i, j = i[new], j[new]
        top = smallest(-_finite(_norms(site.dense_probe, i, j, high, wide)), number)
        return _places(*filled(coarse, gone, (i[top], j[top]), number, rng), high, wide)

    return grow


_NONE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def _sides(b: Block) -> tuple[int, int]:
    """Return a block's two sides, or raise."""
    if isinstance(b, tuple):
        if len(b) != 2:
            raise ArgumentError("b", "an integer or two, the sides of a block", b)
        return check_int("b", b[0], 1, MAX_FEATURES), check_int("b", b[1], 1, MAX_FEATURES)
    side = check_int("b", b, 1, MAX_FEATURES)
    return side, side


def _places(i: Array, j: Array, high: int, wide: int) -> tuple[Array, Array]:
    """Return all edges of the given blocks, block by block."""
    sources = np.repeat(i * high, high)[:, None] + np.tile(np.arange(high), i.size)[:, None]
    targets = np.repeat(j * wide, high)[:, None] + np.arange(wide)
    return np.repeat(sources.ravel(), wide), targets.ravel()


def _blocks(site: Site, edges: Edges, high: int, wide: int) -> Edges:
    """Return the blocks that these edges fill, or raise."""
    rows, columns = edges.shape
    where = f"blocks, {site.name}"
    if rows % high or columns % wide:
        raise ArgumentError(where, f"sides that {high} x {wide} blocks divide", f"{rows} x {columns}")
    shape = rows // high, columns // wide
    blocks = Edges(*sorted_distinct(edges.sources // high, edges.targets // wide, shape), shape)
    if blocks.nnz * high * wide != edges.nnz:
        parts = f"{edges.nnz} edges in {blocks.nnz} blocks"
        raise ArgumentError(where, f"edges that fill whole blocks of {high} x {wide}", parts)
    return blocks


def _coarse(site: Site, dropped: Array, count: int, high: int, wide: int) -> tuple[Site, Array, int]:
    """Return the layer with blocks for edges, which blocks were dropped and how many are to be grown."""
    blocks = _blocks(site, site.weights.edges, high, wide)
    kept = _blocks(site, site.kept(dropped), high, wide)
    area = high * wide
    if check_int("count", count, 0) % area:
        raise ArgumentError("count", f"a multiple of {area}, whole blocks of {high} x {wide}", count)
    free = blocks.shape[0] * blocks.shape[1] - kept.nnz
    if count // area > free:
        raise ArgumentError("count", f"at most {free * area} free places", count)
    gone = np.flatnonzero(kept.find(blocks.sources, blocks.targets) < 0)
    return Site(site.name, Weights(blocks, np.zeros(blocks.nnz))), gone, count // area


def _finite(norms: Array) -> Array:
    if not np.isfinite(norms).all():
        raise NonFiniteError("block gradient growth", "finite derivatives by absent edges", "others")
    return norms


def _norms(probe: Probe, i: Array, j: Array, high: int, wide: int) -> Array:
    """Return Σ|dloss/dw| over each of the given blocks, some blocks at a time."""
    result = np.empty(i.size)
    at_once = max(1, _PIECE // (high * wide))
    for start in range(0, i.size, at_once):
        these = slice(start, start + at_once)
        strength = np.abs(probe.at(*_places(i[these], j[these], high, wide)))
        result[these] = strength.reshape(-1, high * wide).sum(axis=1)
    return result


def _strips(probe: Probe, high: int, wide: int) -> Iterator[tuple[int, Array]]:
    """Yield Σ|dloss/dw| over all blocks, some columns of them at a time: the first, and (rows, columns)."""
    rows, columns = probe.shape
    width = max(1, _PIECE // (rows * wide)) * wide
    for start in range(0, columns, width):
        strength = np.abs(probe.block(start, min(start + width, columns)))
        yield start // wide, strength.reshape(rows // high, high, -1, wide).sum(axis=(1, 3))


def _strongest(probe: Probe, kept: Edges, count: int, high: int, wide: int) -> tuple[Array, Array]:
    """Return the `count` blocks of largest Σ|dloss/dw| that are not kept; at a tie the smaller block."""
    columns = kept.shape[1]
    norms, keys = np.empty(0), np.empty(0, dtype=np.int64)
    ids, starts, sources = kept.by_target
    for start, strip in _strips(probe, high, wide):
        if not count:
            break
        first, last = np.searchsorted(ids, [start, start + strip.shape[1]])
        held = slice(starts[first], starts[last])
        inside = np.repeat(ids[first:last], np.diff(starts[first : last + 1])) - start
        strip[sources[held], inside] = -1
        _finite(strip)
        worst = norms.min() if norms.size == count else 0
        i, j = np.nonzero(strip >= worst)
        norms, keys = np.append(norms, strip[i, j]), np.append(keys, i * columns + j + start)
        best = np.lexsort((keys, -norms))[:count]
        norms, keys = norms[best], keys[best]
    return keys // columns, keys % columns
