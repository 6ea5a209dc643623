"""`SparseMLPRegressor`: one number a row, or several."""

# ruff: noqa: N803 (X is what scikit-learn calls samples)

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d

from gbnn.errors import ArgumentError, KindError
from gbnn.interop.sklearn.base import SparseMLP, held_out_rows
from gbnn.interop.sklearn.losses import OfRows, huber, squared
from gbnn.layers import Layer
from gbnn.topology import Rewirer

__all__ = ["SparseMLPRegressor"]

Array = np.ndarray[Any, Any]

ROOM = 2.0**10
"""How many times what y is may be in a prediction, without being infinite."""
LOSSES: dict[str, OfRows] = {"squared_error": squared, "huber": huber}


def standard(numbers: Array, weights: Array | None, dtype: Any) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column, 1 for 0, or raise if one leaves the dtype."""
    if weights is not None:
        numbers, weights = numbers[weights > 0], weights[weights > 0]
    largest, limits, name = np.abs(numbers).max(axis=0), np.finfo(dtype), np.dtype(dtype).name
    if largest.max() > float(limits.max) / ROOM:
        raise ArgumentError("y", f"numbers whose spread fits in {name}", f"one of size {largest.max():.3g}")
    shift = np.frexp(largest)[1]  # so that no square or sum leaves float64; a power of 2 rounds nothing
    near = np.ldexp(numbers, -shift)
    mean = np.average(near, axis=0, weights=weights)
    spread = np.sqrt(np.average(np.square(near - mean), axis=0, weights=weights))
    spread, mean = np.ldexp(spread, shift), np.ldexp(mean, shift)
    low = (spread > 0) & (spread < float(limits.tiny))
    if low.any():
        raise ArgumentError("y", f"numbers whose spread fits in {name}", f"one of {spread[low][0]:.3g}")
    return mean, np.where(spread > 0, spread, 1.0)


class SparseMLPRegressor(RegressorMixin, SparseMLP):  # type: ignore[misc]
    """A sparse network that predicts numbers, made for very many features few of which occur in a row.

    All that is said of `SparseMLPClassifier` holds: CSR stays sparse, only features that occur get edges.

    Parameters
    ----------
    loss : {"squared_error", "huber"}
        "huber" is a straight line beyond one standard deviation of y: outliers pull less.
    hidden_layer_sizes, edges_per_feature, activation, skip, dropout, input_dropout, learning_rate_init, \
batch_size, max_iter, alpha, rewiring, n_iter_no_change, tol, shuffle, random_state, warm_start, verbose
        As for `SparseMLPClassifier`.
    early_stopping, validation_fraction
        Likewise; the score is R².

    Attributes
    ----------
    model_ : Layer
        The network: it gives y less its mean, over its standard deviation.
    n_features_in_, feature_names_in_, n_iter_, n_layers_, n_outputs_, t_, out_activation_
        As in scikit-learn's `MLPRegressor`.
    loss_, best_loss_, loss_curve_, validation_scores_, best_validation_score_
        As in scikit-learn's `MLPRegressor`; losses are of y in standard deviations.

    Notes
    -----
    Each output is standardised by the mean and standard deviation of y in the first call of `fit` or
    `partial_fit`, so that no learning rate depends on its unit; predictions are in the unit of y.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from gbnn.interop.sklearn import SparseMLPRegressor
    >>> X = sp.random_array((300, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    >>> y = 1000 * X[:, [0]].toarray().ravel() + 5000
    >>> SparseMLPRegressor(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: int | Iterable[int] = (256,),
        *,
        loss: str = "squared_error",
        edges_per_feature: int | str = "auto",
        activation: str | Callable[[], Layer] = "relu",
        skip: bool = False,
        dropout: float | str = "auto",
        input_dropout: float | str = "auto",
        learning_rate_init: float = 5e-3,
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        alpha: float = 0.0,
        rewiring: Rewirer | Callable[[], Rewirer] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.loss = loss
        self.edges_per_feature = edges_per_feature
        self.activation = activation
        self.skip = skip
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.learning_rate_init = learning_rate_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.alpha = alpha
        self.rewiring = rewiring
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPRegressor:
        """Train the network.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)
        y : array-like, shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like, shape (n_samples,), optional
            Not negative; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        self._train(X, y, sample_weight, partial=False)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPRegressor:
        """Train for one epoch on these rows; features not seen before get their edges first.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        self._train(X, y, sample_weight, partial=True)
        return self

    def _read_targets(
        self, y: Any, weights: Array | None, fresh: bool, partial: bool, classes: Any, dtype: Any
    ) -> Any:
        if not isinstance(self.loss, str):
            raise KindError("loss", f"one of {sorted(LOSSES)}", repr(self.loss))
        if self.loss not in LOSSES:
            raise ArgumentError("loss", f"one of {sorted(LOSSES)}", repr(self.loss))
        if sp.issparse(y):
            raise KindError("y", "an array of numbers", type(y).__name__)
        y = np.asarray(y, dtype=np.float64)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        numbers = y.reshape(len(y), -1)
        if fresh:
            mean, deviation = standard(numbers, weights, dtype)
            self._flat = y.ndim == 1
            self._mean, self._deviation = mean, deviation
            self.out_activation_ = "identity"
        elif numbers.shape[1] != self._mean.size:
            raise ArgumentError("y", f"{self._mean.size} outputs, as in the first call", numbers.shape[1])
        with np.errstate(over="ignore"):
            targets = (numbers - self._mean) / self._deviation
        weighed = np.abs(targets if weights is None else targets[weights > 0])
        if weighed.max() > np.sqrt(np.finfo(dtype).max) / ROOM:  # their squares are a loss
            wanted = f"numbers that fit in {np.dtype(dtype).name} in standard deviations of the first call"
            raise ArgumentError("y", wanted, f"one {weighed.max():.3g} of them from the mean")
        return targets

    def _row_loss(self, smoothing: float) -> OfRows:
        return LOSSES[self.loss]

    def _first_bias(self, targets: Any, weights: Array) -> Array:
        return np.zeros(targets.shape[1])

    def _split(self, targets: Any, share: float, seed: int) -> tuple[Array, Array]:
        count = held_out_rows(len(targets), share, least=2)  # of one row there is no R²
        used, kept = train_test_split(np.arange(len(targets)), test_size=count, random_state=seed)
        return np.sort(used), np.sort(kept)

    def _validation_score(self, outputs: Array, targets: Any, weights: Array | None) -> float:
        return float(r2_score(targets, outputs, sample_weight=weights))

    def predict(self, X: Any) -> Array:
        """Return the numbers of each row.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_outputs)
        """
        outputs = self._outputs(X)
        numbers = outputs * self._deviation.astype(outputs.dtype) + self._mean.astype(outputs.dtype)
        return np.asarray(numbers[:, 0] if self._flat else numbers)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
