"""How good a ranking of labels is: P@k, nDCG@k, recall, propensity-scored (`ranking.top_k` makes one).

All take a ranking in any of these forms: label numbers, best first, int of shape (rows, k) (-1: none); or
scores of all labels, best first to be found: a float array (rows, labels), SciPy CSR, `SparseRows` or
`Scores`. A tie goes to the smaller label. The true labels are class labels, int of shape (rows,), or several
a row: SciPy CSR or an array, shape (rows, labels), whatever is not 0. A row without labels counts 0, as in
scikit-learn and in the scripts of the extreme classification repository.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError, KindError, check_array, check_float, check_int
from gbnn.layers.scores import Scores
from gbnn.losses.checks import csr_of
from gbnn.losses.negatives import positives
from gbnn.rows import is_sparse
from gbnn.training.ranking import ranked

__all__ = ["ndcg_at_k", "precision_at_k", "propensities", "ps_ndcg_at_k", "ps_precision_at_k"]
__all__ += ["recall_at_k"]

Array = np.ndarray[Any, Any]


def precision_at_k(ranking: Any, target: Any, k: int = 1) -> float:
    """Return P@k: which share of the first k labels are true, a mean over rows.

    Parameters
    ----------
    ranking : int labels (rows, >= k), or scores (rows, labels)
    target : int labels (rows,), SciPy CSR or array (rows, labels)
    k : int

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If rows do not match, labels are out of range or ranked twice, fewer than k are ranked (-1 fills up),
        or a score is NaN.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.training.metrics import precision_at_k
    >>> precision_at_k([[0, 2], [1, 0]], sp.csr_array([[1, 1, 0], [1, 1, 0]]), k=2)
    0.75
    """
    hits, _, _ = _hits(ranking, target, k)
    return float(hits.mean())


def recall_at_k(ranking: Any, target: Any, k: int = 1) -> float:
    """Return which share of a row's true labels are among the first k, a mean over rows.

    Parameters and errors are those of `precision_at_k`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.training.metrics import recall_at_k
    >>> recall_at_k([[0, 2], [1, 0]], sp.csr_array([[1, 1, 0], [1, 1, 0]]), k=2)
    0.75
    """
    hits, labels, _ = _hits(ranking, target, k)
    return float((hits.sum(axis=1) / np.maximum(labels, 1)).mean())


def ndcg_at_k(ranking: Any, target: Any, k: int = 1) -> float:
    """Return nDCG@k: a true label at place r counts 1 / log2(r + 1), as a share of the most there could be.

    Järvelin and Kekäläinen, ACM TOIS 20, 2002. Parameters and errors are those of `precision_at_k`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.training.metrics import ndcg_at_k
    >>> round(ndcg_at_k([[0, 2, 1]], sp.csr_array([[1, 1, 0]]), k=3), 4)
    0.9197
    """
    hits, labels, _ = _hits(ranking, target, k)
    return float((hits @ _discount(k) / _ideal(labels, k)).mean())


def propensities(target: Any, a: float = 0.55, b: float = 1.5) -> Array:
    """Return how likely each label is to be given where it is true, from how often it is in training.

    ``1 / (1 + C·exp(-a·log(n + b)))`` with ``C = (log(rows) - 1)·(b + 1)^a``, n being how many rows have it:
    rare labels are missing more often. Jain, Prabhu and Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking and other missing label applications", KDD 2016.

    Parameters
    ----------
    target : SciPy CSR or array, shape (rows, labels)
        Of training, at least 3 rows.
    a, b : float
        0.55 and 1.5; the repository takes 0.5 and 0.4 for Wikipedia's data sets, 0.6 and 2.6 for Amazon's.

    Returns
    -------
    ndarray of float64, shape (labels,)
        In (0, 1); that of a label never seen is the least.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training.metrics import propensities
    >>> propensities(np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]])).round(3)
    array([0.8  , 0.721, 0.662])
    """
    _, labels, shape = _true(target)
    if len(shape) < 2:
        raise KindError("target", "SciPy CSR or an array, shape (rows, labels)", "class labels")
    check_int("target, rows", shape[0], 3)
    power, shift = check_float("a", a, 0), check_float("b", b, 0, open_low=True)
    often = np.bincount(labels, minlength=shape[1])
    scale = (np.log(shape[0]) - 1.0) * (shift + 1.0) ** power
    result: Array = 1.0 / (1.0 + scale * (often + shift) ** -power)
    return result


def ps_precision_at_k(ranking: Any, target: Any, propensity: Any, k: int = 1) -> float:
    """Return propensity-scored P@k: a true label counts one over its propensity, so rare ones count more.

    As a share of what the best ranking would reach, sums over all rows (Jain et al., KDD 2016, and the
    repository's scripts), so between 0 and 1; NaN if no row has labels.

    Parameters
    ----------
    ranking, target, k
        As of `precision_at_k`.
    propensity : array_like, shape (labels,)
        As of `propensities`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.training.metrics import ps_precision_at_k
    >>> round(ps_precision_at_k([[0, 2]], sp.csr_array([[1, 1, 0]]), [0.5, 0.25, 0.25], k=2), 4)
    0.3333
    """
    gains, best, _ = _scored(ranking, target, propensity, k)
    return float(gains.sum() / best.sum()) if best.any() else float("nan")


def ps_ndcg_at_k(ranking: Any, target: Any, propensity: Any, k: int = 1) -> float:
    """Return propensity-scored nDCG@k; see `ps_precision_at_k`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.training.metrics import ps_ndcg_at_k
    >>> round(ps_ndcg_at_k([[0, 2]], sp.csr_array([[1, 1, 0]]), [0.5, 0.25, 0.25], k=2), 4)
    0.3801
    """
    gains, best, labels = _scored(ranking, target, propensity, k)
    reached, most = (part @ _discount(k) / _ideal(labels, k) for part in (gains, best))
    return float(reached.sum() / most.sum()) if best.any() else float("nan")


def _true(target: Any) -> tuple[Array, Array, tuple[int, ...]]:
    """Return rows and labels, by row, then label, and the shape."""
    if not sp.issparse(target):
        target = check_array("target", target, "biuf", "class labels, or labels as SciPy CSR or an array")
        if target.ndim == 1:
            target = check_array("target", target, "iu", "integer class labels").astype(np.int64)
            if target.size and target.min() < 0:
                raise ArgumentError("target", "class labels from 0", int(target.min()))
            return *positives(target), target.shape
        if target.ndim != 2:
            raise ArgumentError("target", "shape (rows,) or (rows, labels)", f"shape {target.shape}")
        return *positives(target), target.shape
    checked = csr_of(target)
    return *positives(checked), checked.shape


def _hits(ranking: Any, target: Any, k: int) -> tuple[Array, Array, Array]:
    """Return which of the first k labels of each row are true, how many true ones there are, these k."""
    count = check_int("k", k, 1)
    given = None if is_sparse(ranking) or isinstance(ranking, Scores) else np.asarray(ranking)
    if given is None or given.dtype.kind == "f":
        found = ranked(ranking if given is None else given, count)[0]
        width = (ranking if given is None else given).shape[1]
    else:
        found = check_array("ranking", given, "iu", "int labels, or float scores").astype(np.int64)
        width = None
        if found.ndim != 2 or found.shape[1] < count:
            raise ArgumentError("ranking", f"shape (rows, {count} or more)", f"shape {found.shape}")
        found = found[:, :count]
    rows, labels, shape = _true(target)
    if len(found) != shape[0] or shape[0] == 0:
        raise ArgumentError("target", f"{len(found)} rows, at least one, as ranked", shape[0])
    outputs = shape[1] if len(shape) == 2 else width
    if len(shape) == 2 and width not in (None, shape[1]):
        raise ArgumentError("target", f"shape ({len(found)}, {width})", f"shape {shape}")
    if found.min() < -1 or (outputs is not None and found.max() >= outputs):
        bad = int(found.min() if found.min() < -1 else found.max())
        raise ArgumentError("ranking", f"labels below {outputs}, or -1", bad)
    inside = found >= 0
    ranks = np.sort(found, axis=1)
    if ((ranks[:, 1:] == ranks[:, :-1]) & (ranks[:, 1:] >= 0)).any():
        raise ArgumentError("ranking", "each label once in a row", "some twice")
    # Sorted together with the true labels, one that is ranked and true follows its twin.
    at_rows, at_places = np.nonzero(inside)
    every_row = np.concatenate([rows, at_rows])
    every = np.concatenate([labels, found[inside]])
    order = np.lexsort((every, every_row))  # stable: a true label stands before its twin
    every_row, every = every_row[order], every[order]
    twin = np.append(False, (every[1:] == every[:-1]) & (every_row[1:] == every_row[:-1]))
    ranked_ones = order[twin] - rows.size
    hits = np.zeros(found.shape)
    hits[at_rows[ranked_ones], at_places[ranked_ones]] = 1.0
    return hits, np.bincount(rows, minlength=len(found)), found


def _discount(k: int) -> Array:
    return 1.0 / np.log2(np.arange(2, k + 2))


def _ideal(labels: Array, k: int) -> Array:
    """Return the most discounts that so many true labels can gather among the first k; 1 where none."""
    sums = np.cumsum(np.append(0.0, _discount(k)))
    sums[0] = 1.0
    ideal: Array = sums[np.minimum(labels, k)]
    return ideal


def _scored(ranking: Any, target: Any, propensity: Any, k: int) -> tuple[Array, Array, Array]:
    """Return what the ranked labels gain, what the best ranking would, (rows, k) each; labels of each row."""
    hits, count, found = _hits(ranking, target, k)
    chance = check_array("propensity", propensity, "fiu", "numbers, one a label").astype(np.float64)
    rows, labels, shape = _true(target)
    needed = shape[1] if len(shape) == 2 else int(max(labels.max(), found.max())) + 1
    if chance.ndim != 1 or chance.size < needed or not ((chance > 0) & (chance <= 1)).all():
        wanted = f"{needed} numbers in (0, 1], one a label"
        raise ArgumentError("propensity", wanted, f"shape {chance.shape}, or others")
    gains = np.where(hits > 0, 1.0 / chance[np.maximum(found, 0)], 0.0)
    worth = 1.0 / chance[labels]
    order = np.lexsort((-worth, rows))
    place = np.arange(rows.size) - np.searchsorted(rows, rows)
    best = np.zeros(hits.shape)
    first = place < k
    best[rows[first], place[first]] = worth[order][first]
    return gains, best, count
