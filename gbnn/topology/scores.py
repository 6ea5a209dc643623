"""Scores: what each edge is worth. Functions (site) -> array of shape (nnz,); the lowest go first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.edges import Compressed
from gbnn.errors import ArgumentError, check_finite, check_float, check_function, check_real
from gbnn.rows import SparseRows
from gbnn.topology.moved import ranks_in
from gbnn.topology.site import Site

__all__ = [
    "Score",
    "by_input",
    "checked",
    "fisher",
    "mest",
    "momentum_size",
    "movement",
    "neuron_strength",
    "relative_importance",
    "size",
    "taylor",
]

Array = np.ndarray[Any, Any]
Score = Callable[[Site], Array]
"""``(site) -> ndarray of float, shape (nnz,)``: one finite number an edge (rules look, see `checked`)."""


def checked(score: Score, site: Site) -> Array:
    """Return the scores of a layer's edges, or raise where they are none.

    Parameters
    ----------
    score : callable
    site : Site

    Returns
    -------
    ndarray of float, shape (nnz,)

    Raises
    ------
    ArgumentError, KindError
        If the function does not return one number an edge.
    NonFiniteError
        If a score is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1)))
    >>> scores.checked(lambda site: site.weights.values - np.inf, site)
    Traceback (most recent call last):
    gbnn.errors.NonFiniteError: scores, w: expected finite numbers, got -inf at [0] (2 such of 2)
    """
    where = f"scores, {site.name}"
    result = check_real(where, score(site))
    if result.shape != (site.weights.nnz,):
        raise ArgumentError(where, f"shape ({site.weights.nnz},), one an edge", result.shape)
    check_finite(where, result)
    return result


def size(site: Site) -> Array:
    """Score edges by |w|: magnitude pruning (Han et al., 2015, arXiv:1506.02626).

    Parameters
    ----------
    site : Site

    Returns
    -------
    ndarray of float, shape (nnz,)
        In canonical order; the lowest go first.

    Examples
    --------
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> scores.size(Site("w", Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1))))
    array([2., 1.], dtype=float32)
    """
    return np.abs(site.weights.values)


def taylor(site: Site) -> Array:
    """Score edges by |w·gradient|: how much the loss would change without the edge, to first order.

    SNIP's connection sensitivity (Lee et al., 2019, arXiv:1810.02340); Molchanov et al., 2019,
    arXiv:1906.10771. Parameters and result are those of `size`.

    Raises
    ------
    ArgumentError
        If there is no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1), dtype=float)
    >>> scores.taylor(Site("w", w, np.array([0.5, 3.0])))
    array([1., 3.])
    """
    return np.abs(_product(site.weights.values, site.edge_gradient))


def movement(site: Site) -> Array:
    """Score edges by -w·gradient: those that move towards 0 at this step go first.

    Movement pruning (Sanh et al., 2020, arXiv:2005.07683) sums this over the steps; here it is the batch's
    own. Parameters, result and errors are those of `taylor`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1), dtype=float)
    >>> scores.movement(Site("w", w, np.array([0.5, 3.0])))
    array([-1.,  3.])
    """
    return -_product(site.weights.values, site.edge_gradient)


def mest(lam: float = 0.01) -> Score:
    """Score edges by |w| + lam·|gradient|: small weights that are about to change stay.

    MEST (Yuan et al., 2021, arXiv:2110.14032). Its code has lam = 0 unless asked; 0.01 is what the authors
    of CHT take. Errors of the score are those of `taylor`.

    Parameters
    ----------
    lam : float
        At least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1), dtype=float)
    >>> scores.mest(0.5)(Site("w", w, np.array([0.5, -3.0])))
    array([2.25, 2.5 ])
    """
    share = check_float("lam", lam, 0)

    def score(site: Site) -> Array:
        with np.errstate(all="ignore"):
            result: Array = np.abs(site.weights.values) + share * np.abs(site.edge_gradient)
        return result

    return score


def momentum_size(site: Site) -> Array:
    """Score edges by |momentum|; for Adam by |mean gradient|/(√mean square + 1e-8).

    What sparse momentum (Dettmers & Zettlemoyer, 2019, arXiv:1907.04840) looks at, from the slots
    "momentum" and "square" of the optimizer, or of the one part of a `training.chain` that keeps a momentum.
    Parameters and result are those of `size`.

    Raises
    ------
    ArgumentError
        If the optimizer keeps no momentum, or several parts of it do.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], 1.0, shape=(2, 1))
    >>> scores.momentum_size(Site("w", w, slots={"momentum": np.array([0.5, -3.0])}))
    array([0.5, 3. ])
    """
    name = _slot(site, "momentum")
    mean, square = np.abs(site.slots[name]), name.removesuffix("momentum") + "square"
    if square in site.slots:
        mean = mean / (np.sqrt(site.slots[square]) + 1e-8)
    return mean


def fisher(site: Site) -> Array:
    """Score edges by ½·w²·mean square gradient: the loss without the edge, to second order.

    Optimal brain damage (LeCun et al., 1990) with the empirical Fisher information, which an optimizer with
    a slot "square" (Adam, RMSprop), alone or in a `training.chain`, has at hand, for the Hessian's diagonal
    (Theis et al., 2018, arXiv:1801.05787). Parameters and result are those of `size`.

    Raises
    ------
    ArgumentError
        If the optimizer keeps no mean square, or several parts of it do.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1), dtype=float)
    >>> scores.fisher(Site("w", w, slots={"square": np.array([0.5, 3.0])}))
    array([1. , 1.5])
    """
    values = site.weights.values
    return 0.5 * _product(_product(values, values), site.slots[_slot(site, "square")])


def relative_importance(site: Site) -> Array:
    """Score edges by |w|/Σ|w| out of the source + |w|/Σ|w| into the target.

    Relative importance (RI) of RIA (Zhang et al., 2024, ICLR) and CHTss (Zhang et al., 2025,
    arXiv:2501.19107): no neuron loses all its edges only because they are small. A share of a sum that is 0
    is 0. Parameters and result are those of `size`; the dtype is float64.

    Examples
    --------
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 0, 1], [0, 1, 1], [1.0, -3.0, 1.0], shape=(2, 2))
    >>> scores.relative_importance(Site("w", w))
    array([1.25, 1.5 , 1.25])
    """
    weight, edges = np.abs(site.weights.values.astype(np.float64)), site.weights.edges
    out_of = _to_edges(edges.by_source, sums(edges.by_source, weight))
    into = np.empty_like(out_of)
    into[edges.order] = _to_edges(edges.by_target, sums(edges.by_target, weight[edges.order]))
    with np.errstate(invalid="ignore"):
        of_source, of_target = (
            np.divide(weight, total, out=np.zeros_like(weight), where=total != 0) for total in (out_of, into)
        )
    result: Array = of_source + of_target
    return result


def neuron_strength(site: Site) -> Array:
    """Score edges by Σ|w| into their target: all edges of a weak neuron go together.

    The importance of neurons in Curci et al., 2021, "Truly sparse neural networks at scale",
    arXiv:2102.01732. Parameters and result are those of `size`; the dtype is float64.

    Examples
    --------
    >>> from gbnn.topology import Site, scores
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 0, 1], [0, 1, 1], [1.0, -3.0, 1.0], shape=(2, 2))
    >>> scores.neuron_strength(Site("w", w))
    array([1., 4., 4.])
    """
    weight, edges = np.abs(site.weights.values.astype(np.float64)), site.weights.edges
    into = np.empty_like(weight)
    into[edges.order] = _to_edges(edges.by_target, sums(edges.by_target, weight[edges.order]))
    return into


def by_input(score: Score, power: float = 1.0) -> Score:
    """Multiply a score by ‖x_i‖^power, the norm of the source's values over this batch.

    ``by_input(size)`` is Wanda (Sun et al., 2024, arXiv:2306.11695), ``by_input(relative_importance, 0.5)``
    is RIA (Zhang et al., 2024, ICLR).

    Parameters
    ----------
    score : callable
    power : float
        At least 0.

    Raises
    ------
    ArgumentError
        When scoring, if the layer keeps no `Probe`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.topology import scores
    >>> model = layers.Linear.from_dense(np.diag([1.0, 2.0]))
    >>> _, pullback = model.forward(np.array([[3.0, 1.0], [4.0, 0.0]]))
    >>> _, gradients = pullback(np.ones((2, 2)))
    >>> (site,) = topology.sites(model.parameters(), gradients)
    >>> scores.by_input(scores.size)(site)
    array([5., 2.])
    """
    check_function("score", score)
    exponent = check_float("power", power, 0)

    def weighted(site: Site) -> Array:
        source = site.weights.edges.by_source
        with np.errstate(all="ignore"):
            norm = np.sqrt(_squares(site.probe.x, source.ids)) ** exponent
        return _product(score(site), _to_edges(source, norm))

    return weighted


def _squares(x: Array | SparseRows, ids: Array) -> Array:
    """Return the sum of the squares of some neurons' values, in their dtype."""
    if not isinstance(x, SparseRows):
        squares: Array = np.einsum("bi,bi->i", x, x)[ids]
        return squares
    at = ranks_in(ids, x.columns)
    known = np.flatnonzero(at >= 0)
    return np.bincount(at[known], x.values[known] ** 2, minlength=ids.size).astype(x.dtype)


def sums(neurons: Compressed, values: Array) -> Array:
    """Return the sum of the edges' values of each neuron that has edges, float64, shape (len(ids),)."""
    if not neurons.ids.size:
        return np.empty(0)
    result: Array = np.add.reduceat(values, neurons.starts[:-1], dtype=np.float64)
    return result


def _to_edges(neurons: Compressed, values: Array) -> Array:
    """Give each edge, in the order of `neurons`, the value of its neuron."""
    return np.repeat(values, np.diff(neurons.starts))


def _product(first: Array, second: Array) -> Array:
    """Multiply without warnings: what overflows is found by `checked`."""
    with np.errstate(all="ignore"):
        result: Array = first * second
    return result


def _slot(site: Site, name: str) -> str:
    """Return the name of an optimizer's slot; in a `training.chain` the number of its part comes first."""
    if name in site.slots:
        return name
    found = [slot for slot in site.slots if slot.endswith(f".{name}")]
    if len(found) != 1:
        kept, which = sorted(site.slots) or "none", "one slot" if found else "a slot"
        raise ArgumentError(f"rewiring {site.name}", f"an optimizer that keeps {which} {name!r}", kept)
    return found[0]
