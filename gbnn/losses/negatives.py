"""Wrong labels to learn against: functions (rng, scores, target) -> Negatives, for `losses.Sampled`.

`scores` are the lazy `Scores` of the batch, `target` its checked target: class labels (batch,), or SciPy CSR.
What is drawn is shared by all rows of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError, check_float, check_int, check_real
from gbnn.layers.scores import Scores
from gbnn.losses.by_row import labelled
from gbnn.rows import SparseRows

__all__ = ["Choose", "Negatives", "active", "popular", "positives", "two_hops", "uniform"]

Array = np.ndarray[Any, Any]


class Negatives(NamedTuple):
    """Labels drawn for a batch.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        Ascending, none twice. Some may be true labels of some row: there they stay true.
    chance : callable or None
        ``chance(labels)``: how likely each was to be drawn, in (0, 1]; None where that is not known.
    """

    labels: Array
    chance: Callable[[Array], Array] | None


Choose = Callable[[np.random.Generator, Scores, Any], Negatives]
"""What draws the negatives of a batch."""


def uniform(count: int) -> Choose:
    """Draw `count` labels, each as likely as any other; all of them, where there are no more.

    Parameters
    ----------
    count : int

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.head import ManyLabels
    >>> from gbnn.losses import negatives
    >>> scores, _ = ManyLabels.random(8, 10**6, nnz=10**5, seed=0).forward(np.ones((2, 8)))
    >>> drawn = negatives.uniform(3)(np.random.default_rng(0), scores, np.array([0, 1]))
    >>> drawn.labels, drawn.chance(drawn.labels)
    (array([511136, 636961, 850622]), array([3.e-06, 3.e-06, 3.e-06]))
    """
    return partial(_uniform, check_int("uniform, count", count, 1))


def popular(frequencies: Any, count: int, power: float = 0.75) -> Choose:
    """Draw labels about as often as they occur: `count` times, by frequency to a power; repeats are one.

    The labels of training data are as unequal as words are, so a uniform draw hardly ever meets the ones
    that compete most. The power 3/4 is that of Mikolov et al., NeurIPS 2013.

    Parameters
    ----------
    frequencies : array_like, shape (labels,)
        How often each label occurs in training; not negative. One that never does is never drawn.
    count : int
    power : float
        0 is uniform, 1 proportional.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.head import ManyLabels
    >>> from gbnn.losses import negatives
    >>> scores, _ = ManyLabels.random(8, 4, nnz=20, seed=0).forward(np.ones((2, 8)))
    >>> draw = negatives.popular([100, 10, 0, 1], 3)
    >>> draw(np.random.default_rng(0), scores, np.array([0, 1])).labels
    array([0])
    """
    times = check_int("popular, count", count, 1)
    often = check_real("popular, frequencies", frequencies).astype(np.float64)
    if often.ndim != 1 or not (np.isfinite(often).all() and (often >= 0).all() and often.any()):
        wanted = "finite numbers, one a label, not negative, and not only 0"
        raise ArgumentError("popular, frequencies", wanted, f"others, of shape {often.shape}")
    share = np.where(often > 0, often ** check_float("popular, power", power, 0), 0.0)
    return partial(_popular, np.cumsum(share / share.sum()), times)


def two_hops(count: int) -> Choose:
    """Walk from the true labels of the batch to labels two hops away: `count` walks label - neuron - label.

    Labels that share hidden neurons with the true ones are hard to tell from them. Each step is to a random
    neighbour; repeats are one. How likely a label was is not known, so a softmax cannot be corrected for it.

    Parameters
    ----------
    count : int

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.head import ManyLabels
    >>> from gbnn.losses import negatives
    >>> head = ManyLabels.from_dense(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))
    >>> scores, _ = head.forward(np.ones((1, 2)))
    >>> negatives.two_hops(20)(np.random.default_rng(0), scores, np.array([3])).labels
    array([2, 3])
    """
    return partial(_two_hops, check_int("two_hops, count", count, 1))


def active(count: int) -> Choose:
    """Walk from active hidden neurons to labels: `count` steps, from each neuron in proportion to its size.

    These are the labels that what the batch says speaks for or against. Repeats are one; chances not known.

    Parameters
    ----------
    count : int

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.head import ManyLabels
    >>> from gbnn.losses import negatives
    >>> head = ManyLabels.from_dense(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))
    >>> scores, _ = head.forward(np.array([[0.0, 2.0]]))
    >>> negatives.active(20)(np.random.default_rng(0), scores, np.array([0])).labels
    array([2, 3])
    """
    return partial(_active, check_int("active, count", count, 1))


def positives(target: Any) -> tuple[Array, Array]:
    """Return rows and labels of a target of class labels, or of several a row, by row, then label.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.losses.negatives import positives
    >>> positives(np.array([5, 3]))
    (array([0, 1]), array([5, 3]))
    """
    if isinstance(target, np.ndarray) and target.ndim == 1:
        return np.arange(target.size), target
    return labelled(target)[:2]


def _uniform(count: int, rng: np.random.Generator, scores: Scores, target: Any) -> Negatives:
    labels = scores.shape[1]
    if count >= labels:
        return Negatives(np.arange(labels), lambda some: np.ones(some.size))
    drawn = rng.choice(labels, count, replace=False, shuffle=False)
    return Negatives(np.sort(drawn), lambda some: np.full(some.size, count / labels))


def _popular(
    cumulated: Array, count: int, rng: np.random.Generator, scores: Scores, target: Any
) -> Negatives:
    if cumulated.size != scores.shape[1]:
        wanted = f"{scores.shape[1]} frequencies, one a label"
        raise ArgumentError("popular, frequencies", wanted, cumulated.size)
    drawn = np.searchsorted(cumulated, rng.random(count) * cumulated[-1], side="right")

    def chance(labels: Array) -> Array:
        share = cumulated[labels] - np.where(labels > 0, cumulated[labels - 1], 0.0)
        missed: Array = (1.0 - share / cumulated[-1]) ** count
        return 1.0 - missed

    return Negatives(np.unique(drawn), chance)


def _step(rng: np.random.Generator, ids: Array, starts: Array, others: Array, at: Array) -> Array:
    """Return a random neighbour of each of these neurons; those that have none drop out."""
    if not ids.size:
        return at[:0]
    place = np.minimum(np.searchsorted(ids, at), ids.size - 1)
    place = place[ids[place] == at]
    degree = starts[place + 1] - starts[place]
    neighbours: Array = others[starts[place] + (rng.random(place.size) * degree).astype(np.int64)]
    return neighbours


def _two_hops(count: int, rng: np.random.Generator, scores: Scores, target: Any) -> Negatives:
    _, labels = positives(target)
    begin = labels[rng.integers(labels.size, size=count)] if labels.size else labels
    edges = scores.weights.edges
    hidden = _step(rng, *edges.by_target, begin)
    return Negatives(np.unique(_step(rng, *edges.by_source, hidden)), None)


def _active(count: int, rng: np.random.Generator, scores: Scores, target: Any) -> Negatives:
    h = scores.h
    size = np.abs(h.values if isinstance(h, SparseRows) else h.ravel(order="F")).astype(np.float64)
    total = np.cumsum(np.where(np.isfinite(size), size, 0.0))
    if not total.size or total[-1] == 0:
        return Negatives(np.empty(0, dtype=np.int64), None)
    drawn = np.searchsorted(total, rng.random(count) * total[-1], side="right")
    drawn = np.minimum(drawn, total.size - 1)
    hidden = h.columns[drawn] if isinstance(h, SparseRows) else drawn // len(h)
    return Negatives(np.unique(_step(rng, *scores.weights.edges.by_source, hidden)), None)
