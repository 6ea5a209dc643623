"""The strongest absent edges of a layer by |dloss/dw|, exactly, without anything of size in x out."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError, NonFiniteError, check_bool, check_int
from gbnn.semirings import ActiveProbe, Probe
from gbnn.topology.grow.strongest_finalists import Finalists
from gbnn.topology.grow.strongest_neurons import Neurons, check_derivatives, neurons
from gbnn.topology.grow.strongest_routes import by_blocks, by_bound, pairs_above, tile_shape, visit
from gbnn.topology.moved import among, edges_out_of

__all__ = ["Search", "check_layer", "search_absent", "strongest_absent"]

Array = np.ndarray[Any, Any]
Route = Literal["blocks", "bound"]

# Pairs of one tile: its derivatives and what is found among them stay in the processor's cache.
_BLOCK = 2**18
# Derivatives that a search may compute: at 10**11 products a second and a batch of 128, six hours' worth.
_LIMIT = 2**44
# What a pair costs `bound` if it costs `blocks` 1: neurons are gathered (benchmarks/gradient_growth.py).
_GATHERED = 1.3
# Neurons of each side that the first guess of the worst of the best rests on.
_SAMPLE = 256
# In larger batches the bound of float32 rounding is too wide to tell pairs apart.
SINGLE = 2**14


class Search(NamedTuple):
    """What a search for the strongest absent edges found.

    Attributes
    ----------
    sources, targets : ndarray of int64, shape (count,)
        Strongest first; at a tie the smaller (source, target).
    scores : ndarray of float64, shape (count,)
        The size of each derivative.
    route : {"blocks", "bound"}
        How pairs were visited.
    visited : float
        The share of all in x out pairs whose derivative was computed.
    """

    sources: Array
    targets: Array
    scores: Array
    route: Route
    visited: float


def strongest_absent(
    probe: Probe | ActiveProbe, present: Edges, count: int, *, block: int = _BLOCK, route: Route | None = None
) -> tuple[Array, Array]:
    """Return the `count` absent edges of largest |Σ_b x[b, i]·dy[b, j]|, exactly.

    `search_absent` says more: parameters and errors are the same.

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,), strongest first

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.semirings import Probe
    >>> from gbnn.topology import strongest_absent
    >>> probe = Probe(np.asfortranarray([[1.0, 2.0]]), np.asfortranarray([[3.0, -5.0]]))
    >>> present, _ = Edges.from_coo([1], [1], (2, 2))
    >>> strongest_absent(probe, present, 2)
    (array([1, 0]), array([0, 1]))
    """
    search = search_absent(probe, present, count, block=block, route=route)
    return search.sources, search.targets


def search_absent(
    probe: Probe | ActiveProbe,
    present: Edges,
    count: int,
    *,
    block: int = _BLOCK,
    route: Route | None = None,
    limit: int = _LIMIT,
    fill: bool = True,
) -> Search:
    """Find the `count` absent edges of largest |s|, s = Σ_b x[b, i]·dy[b, j].

    s is summed in float64 in the order of the samples (`Probe.exact`); at a tie the smaller
    (source, target) wins. BLAS only proposes: every pair that could be among the best, its rounding
    considered, is scored again so. Both routes therefore find the same edges:

    - ``"blocks"`` visits all pairs of neurons that have a nonzero value.
    - ``"bound"`` visits them in the order of ‖x_i‖·‖dy_j‖ >= |s|, until no other can be among the best.
      It pays where norms differ much.

    Parameters
    ----------
    probe : Probe or ActiveProbe
        The layer's last x and dy. Neurons and samples that are all zero are passed over; of a sparse batch
        only active ones are looked at.
    present : Edges
        Edges that cannot be grown.
    count : int
    block : int
        Pairs of neurons of one BLAS product.
    route : {"blocks", "bound"}, optional
        By default the one that costs less by an estimate.
    limit : int
        Derivatives that may be computed.
    fill : bool
        Where fewer than `count` absent edges have a derivative: whether the smallest (source, target) of
        derivative zero are added, of a sparse batch those of active sources first; else fewer are found.

    Returns
    -------
    Search

    Raises
    ------
    ArgumentError, KindError
        If there are fewer absent edges than `count`, `probe` and `present` are none or of different shapes,
        the route has another name, or more than `limit` derivatives would have to be computed.
    NonFiniteError
        If a derivative by an absent edge is NaN or infinite.

    Notes
    -----
    Memory is O(nnz + count + block + in + out); of a sparse batch, with active neurons instead of in and out,
    and the batch over these as a dense array. Where more than `count` pairs nearly tie, or fewer have a
    derivative, many are scored twice, which takes about ten times longer than BLAS.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.semirings import Probe
    >>> from gbnn.topology.grow.strongest import search_absent
    >>> probe = Probe(np.asfortranarray([[1.0, 0.0, 2.0]]), np.asfortranarray([[3.0, -5.0]]))
    >>> present, _ = Edges.from_coo([2], [1], (3, 2))
    >>> search = search_absent(probe, present, 2)
    >>> search.sources, search.targets, search.scores
    (array([2, 0]), array([0, 1]), array([6., 5.]))
    >>> search.visited  # source 1 is silent: 4 of 6 pairs
    0.6666666666666666
    """
    rows, columns = check_layer(probe, present, sparse=True)
    if route not in (None, "blocks", "bound"):
        raise ArgumentError("route", "'blocks', 'bound' or None", repr(route))
    if check_int("count", count, 0) > rows * columns - present.nnz:
        raise ArgumentError("count", f"at most {rows * columns - present.nnz} absent edges", count)
    check_int("block", block, 1)
    check_int("limit", limit, 0)
    check_bool("fill", fill)
    none = np.empty(0, dtype=np.int64)
    if not count:
        return Search(none, none, np.empty(0), route or "blocks", 0.0)
    if isinstance(probe, ActiveProbe):
        return _among_active(probe, present, count, block, route, limit, fill)
    found = _searched(probe, present, count, block, route, limit)
    if not fill:
        return found
    return Search(*_filled(*found[:3], present, count), *found[3:])


def _searched(
    probe: Probe, present: Edges, count: int, block: int, route: Route | None, limit: int
) -> Search:
    """Find the best absent edges that have a derivative: `count`, or as many as there are."""
    rows, columns = present.shape
    none = np.empty(0, dtype=np.int64)
    dtype = probe.x.dtype if len(probe.x) <= SINGLE else np.dtype(np.float64)
    left, right = neurons(probe, dtype)
    check_derivatives(probe, present, left, right, block)
    if not left.ids.size or not right.ids.size:
        return Search(none, none, np.empty(0), route or "blocks", 0.0)
    shape = tile_shape(left, right, block)
    ranked_left, ranked_right = left.by_norm(), right.by_norm()
    floors = _Floors(ranked_left, ranked_right, count * rows * columns / (rows * columns - present.nnz))
    pairs, likely = (
        left.ids.size * right.ids.size,
        pairs_above(ranked_left, ranked_right, shape, floors.next()),
    )
    if route is None:
        route = "bound" if likely * _GATHERED < pairs else "blocks"
    if (likely if route == "bound" else pairs) > limit:
        wanted = f"at most {limit} derivatives to compute (limit)"
        raise ArgumentError("gradient growth", wanted, f"about {likely if route == 'bound' else pairs}")
    while True:
        finalists = Finalists(probe, present, count, floors.floor)
        if route == "bound":
            corners = by_bound(ranked_left, ranked_right, shape, finalists)
            visited = visit(corners, ranked_left, ranked_right, shape, finalists, limit)
        else:
            visited = visit(by_blocks(left, right, shape), left, right, shape, finalists, limit)
        finalists.close()
        if finalists.complete:
            break
        floors.next()  # the guess was too high
    found = finalists.sources, finalists.targets, finalists.scores
    return Search(*found, route, visited / (rows * columns))


def _among_active(
    probe: ActiveProbe, present: Edges, count: int, block: int, route: Route | None, limit: int, fill: bool
) -> Search:
    """Search among the neurons that take part in a sparse batch, under small numbers in the same order."""
    small, sources, targets = probe.compact()
    held, _ = among(present, sources, targets)
    places = sources.size * targets.size
    try:
        best = min(count, places - held.nnz)
        found = _searched(small, held, best, block, route, limit) if best else None
    except NonFiniteError as error:  # it says which, under a number of its own
        raise NonFiniteError(error.where, error.expected, "NaN or infinity at an active neuron") from None
    if found is None:
        none = np.empty(0, dtype=np.int64)
        found = Search(none, none, np.empty(0), route or "blocks", 0.0)
    edges = sources[found.sources], targets[found.targets], found.scores
    if fill:  # zeros of active sources first; where there is none, of source 0, as over all
        at, owners = edges_out_of(present, sources)
        rows = Edges(owners, present.targets[at], (sources.size, present.shape[1]))
        some = min(count, rows.shape[0] * rows.shape[1] - rows.nnz)
        filled = _filled(found.sources, edges[1], found.scores, rows, some)
        edges = sources[filled[0]], filled[1], filled[2]
    if fill:
        edges = _filled(*edges, present, count)
    return Search(*edges, found.route, found.visited * places / (present.shape[0] * present.shape[1]))


def check_layer(probe: Any, present: Any, *, sparse: bool = False) -> tuple[int, int]:
    """Return the shape of a layer if its probe and its edges have the same, or raise.

    A probe of a sparse batch is taken where `sparse` says so.
    """
    if not isinstance(probe, Probe | ActiveProbe if sparse else Probe):
        raise KindError("probe", "a Probe, such as Site.probe", type(probe).__name__)
    if not isinstance(present, Edges):
        raise KindError("present", "Edges, such as Site.kept gives", type(present).__name__)
    rows, columns = present.shape
    if probe.shape != present.shape:
        raise ArgumentError("probe", f"one of a {rows} x {columns} layer", f"shape {probe.shape}")
    return rows, columns


class _Floors:
    """Guesses, each lower than the last, of the score of the worst of the best.

    A good guess keeps nearly all pairs from being scored; a wrong one costs another round, never an edge.
    It comes from the derivatives of neurons taken at even steps in the order of norm.
    """

    def __init__(self, left: Neurons, right: Neurons, count: float) -> None:
        x, dy = (side.take(_even(side.ids.size)).strip(slice(None)) for side in (left, right))
        with np.errstate(all="ignore"):
            self._scores = np.sort(np.abs(x @ dy.T), axis=None).astype(np.float64)
        expected = count / (left.ids.size * right.ids.size) * self._scores.size
        self._rank = 1.3 * expected + 3 * math.sqrt(expected) + 1
        self.floor = np.inf

    def next(self) -> float:
        rank = math.ceil(self._rank)
        self.floor = float(self._scores[-rank]) if rank <= self._scores.size else 0.0
        if not np.isfinite(self.floor):  # overflow, at edges that are there
            self.floor = 0.0
        self._rank *= 4
        return self.floor


def _even(size: int) -> Array:
    """Return at most `_SAMPLE` positions at even steps."""
    some = min(size, _SAMPLE)
    return (2 * np.arange(some) + 1) * size // (2 * some)


def _filled(
    sources: Array, targets: Array, scores: Array, present: Edges, count: int
) -> tuple[Array, Array, Array]:
    """Append the smallest absent edges not among those given, of score zero, so that there are `count`."""
    missing = count - sources.size
    if not missing:
        return sources, targets, scores
    columns = present.shape[1]
    # So many places hold enough that are free; only their rows can matter.
    first = min(present.shape[0] * columns, missing + sources.size + present.nnz)
    taken_sources = np.concatenate([present.sources, sources])
    taken_targets = np.concatenate([present.targets, targets])
    near = taken_sources <= first // columns
    keys = taken_sources[near] * columns + taken_targets[near]
    free = np.ones(first, dtype=bool)
    free[keys[keys < first]] = False
    more = np.flatnonzero(free)[:missing]
    return (
        np.concatenate([sources, more // columns]),
        np.concatenate([targets, more % columns]),
        np.concatenate([scores, np.zeros(missing)]),
    )
