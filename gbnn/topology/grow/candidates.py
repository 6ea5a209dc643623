"""Growth by the gradient of a sample of candidates: GSE, guided stochastic exploration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import (
    ArgumentError,
    KindError,
    NonFiniteError,
    check_finite,
    check_float,
    check_function,
    check_int,
    check_real,
)
from gbnn.sampling import MAX_EDGES
from gbnn.topology.grow.places import check_room, filled, sorted_distinct
from gbnn.topology.grow.rules import Grow
from gbnn.topology.grow.strongest import strongest_absent
from gbnn.topology.moved import at_edges
from gbnn.topology.prune.rules import smallest
from gbnn.topology.site import Site

__all__ = [
    "Distribution",
    "check_candidates",
    "drawn",
    "grabo",
    "graest",
    "sampled_gradient",
    "uniform",
    "weights_by",
]

Array = np.ndarray[Any, Any]
MOST = 2**31
Distribution = Callable[[Site, np.random.Generator], tuple[Array, Array]]


def uniform(site: Site, rng: np.random.Generator) -> tuple[Array, Array]:
    """Let every source and every target be as likely as any other (GSE's "uniform").

    Parameters
    ----------
    site : Site
    rng : numpy.random.Generator
        For distributions that draw; this one does not.

    Returns
    -------
    sources, targets : ndarray of float64, shapes (in,) and (out,)
        Weights of the neurons, not negative; a neuron is drawn in proportion to its weight.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.candidates import uniform
    >>> from gbnn.weights import Weights
    >>> uniform(Site("w", Weights.from_coo([0], [0], 1.0, shape=(3, 2))), np.random.default_rng(0))
    (array([1., 1., 1.]), array([1., 1.]))
    """
    rows, columns = site.weights.shape
    return np.ones(rows), np.ones(columns)


def grabo(site: Site, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weigh a source by Σ_b |x[b, i]| and a target by Σ_b |dy[b, j]| (GSE's "GraBo").

    Their product bounds |Σ_b x[b, i]·dy[b, j]| from above. Parameters and result are those of `uniform`;
    the layer must be a plus_times one.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology.grow.candidates import grabo
    >>> model = layers.Linear.from_dense(np.diag([1.0, 2.0]))
    >>> _, pullback = model.forward(np.array([[1.0, 5.0], [2.0, 0.0]]))
    >>> (site,) = topology.sites(model.parameters(), pullback(np.array([[1.0, 2.0], [-1.0, 0.0]]))[1])
    >>> grabo(site, np.random.default_rng(0))
    (array([3., 5.]), array([2., 2.]))
    """
    probe = site.dense_probe
    return _sums(probe.x), _sums(probe.dy)


def graest(site: Site, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weigh a source by |Σ_b s_b·x[b, i]|, a target by |Σ_b s_b·dy[b, j]|: random signs s (GSE's "GraEst").

    The product without the absolute values is an unbiased estimate of the gradient Σ_b x[b, i]·dy[b, j]
    (the sketch of Alon, Matias and Szegedy, 1996): both sides must have the same signs. Parameters and
    result are those of `uniform`; the layer must be a plus_times one.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology.grow.candidates import graest
    >>> model = layers.Linear.from_dense(np.diag([1.0, 2.0]))
    >>> _, pullback = model.forward(np.array([[1.0, -5.0]]))
    >>> (site,) = topology.sites(model.parameters(), pullback(np.array([[1.0, 2.0]]))[1])
    >>> graest(site, np.random.default_rng(0))
    (array([1., 5.]), array([1., 2.]))
    """
    probe = site.dense_probe
    signs = rng.choice(np.array([-1, 1], dtype=probe.x.dtype), size=probe.x.shape[0])
    with np.errstate(all="ignore"):  # what overflows is found where the weights are used
        sources, targets = np.abs(signs @ probe.x), np.abs(signs @ probe.dy)
    return sources.astype(np.float64), targets.astype(np.float64)


# Entries of the activations looked at in one go.
_PIECE = 2**18


def _sums(array: Array) -> Array:
    """Sum the absolute values of each column, without a copy of the whole array."""
    result = np.empty(array.shape[1])
    width = max(1, _PIECE // max(1, array.shape[0]))
    for start in range(0, array.shape[1], width):
        piece = np.abs(array[:, start : start + width])
        piece.sum(axis=0, dtype=np.float64, out=result[start : start + width])
    return result


def sampled_gradient(candidates: float | int = 1.0, distribution: Distribution = grabo) -> Grow:
    """Grow the edges of largest |dloss/dw| among sampled candidates (GSE).

    Pairs are drawn, with replacement, the source and the target independently from a distribution over
    neurons. Those the layer had before this rewiring do not count, nor do repetitions. What the candidates
    do not yield is filled up at random. A layer at least half full has no more absent places than edges:
    all of them are candidates then, as in the authors' code. Just-dropped edges are taken only where there
    is no other place.

    Heddes, Srinivasa, Givargis and Nicolau, "Always-Sparse Training by Growing Connections with Guided
    Stochastic Exploration".

    Parameters
    ----------
    candidates : float or int
        How many pairs are drawn: a float is a multiple of the layer's edges (the paper's 1.0), an int their
        number; at most 2**40.
    distribution : callable
        ``(site, rng) -> (sources, targets)``, weights of the neurons: `uniform`, `grabo`, `graest` or one of
        your own. Weights that are all zero count as equal.

    Returns
    -------
    Grow
        For plus_times layers. Time and memory are O(nnz + candidates + in + out).

    Raises
    ------
    ArgumentError, KindError
        If `candidates` is negative, too large or no number, or `distribution` no function; when growing, if
        `count` is more than the free places, or the distribution's weights are no arrays of numbers, negative
        or of another size.
    NonFiniteError
        When growing, if a weight or the derivative by a candidate is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology.grow.candidates import sampled_gradient
    >>> model = layers.Linear.from_dense(np.eye(4))
    >>> _, pullback = model.forward(np.array([[1.0, 5.0, 0.0, 0.0]]))
    >>> (site,) = topology.sites(model.parameters(), pullback(np.array([[1.0, 0.0, 2.0, 0.0]]))[1])
    >>> sampled_gradient(candidates=100)(site, np.array([0]), 1, np.random.default_rng(0))
    (array([1]), array([2]))
    """
    budget = check_candidates(candidates)
    check_function("distribution", distribution)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        empty = check_room(site, dropped, count)
        edges = site.weights.edges
        if empty <= edges.nnz:
            best = strongest_absent(site.probe, edges, min(count, empty))
            return filled(site, dropped, best, count, rng)
        drawn_pairs = drawn(weights_by(distribution, site, rng), edges.shape, budget(edges.nnz), rng)
        sources, targets = _absent(edges, *sorted_distinct(*drawn_pairs, edges.shape))
        strength = np.abs(at_edges(site.probe, sources, targets))
        if not np.isfinite(strength).all():
            raise NonFiniteError("sampled gradient growth", "finite derivatives by candidates", "others")
        top = smallest(-strength, count)  # in canonical order: the smaller edge wins a tie
        return filled(site, dropped, (sources[top], targets[top]), count, rng)

    return grow


def check_candidates(candidates: float | int) -> Callable[[int], int]:
    """Return the function from a number of edges to that of candidates, or raise."""
    if isinstance(candidates, Integral):  # bool too, which check_int refuses
        number = check_int("candidates", candidates, 0, MAX_EDGES)
        return lambda nnz: number
    share = check_float("candidates", candidates, 0, MAX_EDGES)
    return lambda nnz: check_int("candidates", int(share * nnz), 0, MAX_EDGES)


def weights_by(distribution: Distribution, site: Site, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the weights of a layer's neurons by a distribution, or raise where they are none.

    Parameters
    ----------
    distribution : callable
    site : Site
    rng : numpy.random.Generator

    Returns
    -------
    sources, targets : ndarray, shapes (in,) and (out,)
        Finite and not negative.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If the function returns anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.candidates import weights_by
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(3, 2)))
    >>> weights_by(lambda site, rng: ([1, 2], [1, 2]), site, np.random.default_rng(0))
    Traceback (most recent call last):
    gbnn.errors.ArgumentError: distribution of sources: expected shape (3,), got (2,)
    """
    if max(site.weights.shape) > MOST:
        wanted = f"a layer of at most {MOST} neurons a side: each gets a weight"
        raise ArgumentError(f"distribution, {site.name}", wanted, site.weights.shape)
    weights = distribution(site, rng)
    if not isinstance(weights, tuple | list) or len(weights) != 2:
        expected = "a pair of arrays, the weights of the sources and of the targets"
        raise KindError("distribution", expected, f"{type(weights).__name__}, returned for {site.name}")
    sources, targets = _checked(weights, site.weights.shape)
    return sources, targets


def _checked(weights: Sequence[Any], shape: tuple[int, int]) -> list[Array]:
    """Return finite weights, not negative, one a neuron, or raise."""
    ends = []
    for side, given, size in zip(("sources", "targets"), weights, shape, strict=True):
        where = f"distribution of {side}"
        weight = check_real(where, given)
        if weight.shape != (size,):
            raise ArgumentError(where, f"shape ({size},)", weight.shape)
        check_finite(where, weight)
        if weight.min() < 0:
            raise ArgumentError(where, "weights that are not negative", weight.min())
        ends.append(weight)
    return ends


def drawn(
    weights: tuple[Array, Array], shape: tuple[int, int], count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw `count` pairs, with replacement, each end in proportion to its weight.

    Parameters
    ----------
    weights : (sources, targets)
        Arrays of shapes (in,) and (out,), not negative.
    shape : (int, int)
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,)
        By source. Time is O(in + out + count).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.grow.candidates import drawn
    >>> drawn((np.array([0.0, 1.0]), np.array([2.0, 0.0])), (2, 2), 3, np.random.default_rng(0))
    (array([1, 1, 1]), array([0, 0, 0]))
    """
    ends = []
    for weight in _checked(weights, shape):
        chance = weight.astype(np.float64)
        if not chance.any():
            chance = np.ones(chance.size)
        # How often each comes is one multinomial draw: several times faster than looking up each draw.
        possible = np.flatnonzero(chance)
        share = chance[possible] / chance.max()
        ends.append(np.repeat(possible, rng.multinomial(count, share / share.sum())))
    return ends[0], rng.permutation(ends[1])


def _absent(edges: Edges, sources: Array, targets: Array) -> tuple[Array, Array]:
    """Return those of the given edges that there are not yet."""
    new = edges.find(sources, targets) < 0
    return sources[new], targets[new]
