"""`SparseMLP`, what the classifier and the regressor share: data in, training, outputs."""

# ruff: noqa: N803, N806 (X is what scikit-learn calls samples)

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from gbnn.errors import ArgumentError
from gbnn.interop.sklearn import network
from gbnn.interop.sklearn.losses import OfRows, RowLoss
from gbnn.interop.sklearn.options import Options, checked
from gbnn.interop.sklearn.samples import Epochs, as_rows, energy, entries, occurring, readable, take
from gbnn.interop.sklearn.stopping import Progress
from gbnn.layers import Layer
from gbnn.layers.layer import Activations
from gbnn.rows import SparseRows
from gbnn.training import State, adamw, schedules, train
from gbnn.weights import Weights

__all__ = ["SparseMLP", "held_out_rows"]

Array = np.ndarray[Any, Any]

HELD = 2**24
"""Most outputs of a layer held at a time in prediction."""


def held_out_rows(rows: int, share: float, least: int = 1) -> int:
    """Return how many of the rows are held out, or raise ArgumentError if none is left to train on."""
    count = max(least, math.ceil(share * rows))
    if count >= rows:
        got = f"n_samples = {rows} of which {count} would be held out"
        raise ArgumentError("early_stopping, validation_fraction", "rows left to train on", got)
    return count


def _check_sum(where: str, weights: Array) -> None:
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not math.isfinite(total):
        raise ArgumentError(where, "weights of rows whose sum is finite", total)


class SparseMLP(BaseEstimator, ABC):  # type: ignore[misc]
    """The base of the estimators; use `SparseMLPClassifier` or `SparseMLPRegressor`."""

    model_: Layer
    _entrances: list[str]
    _state: State
    _rng: np.random.Generator
    _dtype: Any
    _start: float

    # -- What each kind says ---------------------------------------------------------------------------------

    @abstractmethod
    def _read_targets(
        self, y: Any, weights: Array | None, fresh: bool, partial: bool, classes: Any, dtype: Any
    ) -> Any:
        """Check targets and return them as the loss takes them; set what is learnt of them if `fresh`."""

    @abstractmethod
    def _row_loss(self, smoothing: float) -> OfRows: ...

    @abstractmethod
    def _first_bias(self, targets: Any, weights: Array) -> Array: ...

    def _row_weights(self, targets: Any, weights: Array | None, partial: bool) -> Array | None:
        """Return the weight of each row, class weights included."""
        return weights

    @abstractmethod
    def _split(self, targets: Any, share: float, seed: int) -> tuple[Array, Array]:
        """Return rows to train on and rows to validate with."""

    @abstractmethod
    def _validation_score(self, outputs: Array, targets: Any, weights: Array | None) -> float: ...

    # -- Training --------------------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, sample_weight: Any, *, partial: bool, classes: Any = None) -> None:
        options = checked(self)
        fresh = not (hasattr(self, "model_") and (partial or self.warm_start))
        X, y = validate_data(
            self,
            readable(X),
            y,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=(np.float64, np.float32),
            multi_output=True,
            reset=fresh,
        )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            _check_sum("sample_weight", weights)
        dtype = X.dtype if fresh else self._dtype
        targets = self._read_targets(y, weights, fresh, partial, classes, dtype)
        weights = self._row_weights(targets, weights, partial)
        if weights is not None:
            _check_sum("sample_weight, class_weight", weights)
        if fresh:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            self._rng = np.random.default_rng(seed)
            self._dtype = dtype
        rows = as_rows(X, self._dtype)
        if weights is not None and not weights.all():  # what weighs nothing is not there
            if not weights.any():
                raise ArgumentError("sample_weight, class_weight", "a row of weight above 0", "only zeros")
            kept = np.flatnonzero(weights)
            rows, targets, weights = take(rows, kept), targets[kept], weights[kept]
        held_out = None
        if options.early_stopping and not partial:
            used, kept = self._split(targets, options.validation_fraction, int(self._rng.integers(2**31)))
            held_out = take(rows, kept), targets[kept], None if weights is None else weights[kept]
            rows, targets = take(rows, used), targets[used]
            weights = None if weights is None else weights[used]
        self._prepare(options, rows, targets, weights, fresh)
        self._run(options, rows, targets, weights, held_out, partial)

    def _prepare(
        self, options: Options, rows: Activations, targets: Any, weights: Array | None, fresh: bool
    ) -> None:
        """Make the network, or give edges to features that it has not seen."""
        columns, counts = occurring(rows)
        if not fresh:
            plan = replace(options.plan, start=self._start)
            network.grow(plan, self.model_, self._entrances, columns, self._state, self._rng)
            return
        bias = self._first_bias(targets, np.ones(len(rows)) if weights is None else weights)
        plan = options.plan.suited(len(rows), counts, entries(rows))
        shape = rows.shape[1], energy(rows, weights)
        self.model_, self._entrances = network.build(
            plan, columns, counts, *shape, bias.astype(self._dtype), self._rng
        )
        self._state = State.start(self.model_, self._optimizer(options, 0), int(self._rng.integers(2**31)))
        self.n_layers_ = len(options.plan.hidden) + 2
        self.n_outputs_ = bias.size
        self._start = plan.start
        self.t_ = 0
        self.n_iter_ = 0
        self.loss_curve_: list[float] = []

    def _optimizer(self, options: Options, steps: int) -> Any:
        """AdamW; over the `steps` of a fit its rate falls to 0 in a line, without them it stays."""
        rate: Any = options.learning_rate
        if steps:
            start, line = self._state.step, schedules.linear(options.learning_rate, 0.0, steps)

            def rate(step: int) -> float:
                return line(step - start)

        return adamw(rate, weight_decay=options.alpha, decay=lambda name: not name.endswith("bias"))

    def _run(
        self,
        options: Options,
        rows: Activations,
        targets: Any,
        weights: Array | None,
        held_out: tuple[Any, Any, Any] | None,
        partial: bool,
    ) -> None:
        batches = Epochs(rows, options.size_of_batch(len(rows)), self._rng, options.shuffle)
        epochs = 1 if partial else options.epochs(len(rows), len(batches), many=self._start == network.NEAR)
        edged = any(isinstance(p, Weights) for p in self.model_.parameters().values())
        weights = None if weights is None else weights / weights.mean()
        loss = RowLoss(self._row_loss(options.label_smoothing), targets, weights)
        optimizer = self._optimizer(options, 0 if partial else len(batches) * epochs)
        progress = Progress(options, self.model_, self._state, watch=not partial)
        if not partial:
            self.loss_curve_, self.n_iter_ = [], 0
        steps = train(
            self.model_,
            batches,
            loss=loss,
            optimizer=optimizer,
            rewiring=options.rewirer if edged else None,  # a full network has nowhere to move an edge to
            epochs=epochs,
            state=self._state,
        )
        total = 0.0
        for step in steps:
            total += step.loss * step.rows
            self.t_ += step.rows
            if not step.last_in_epoch:
                continue
            self.loss_curve_.append(total / len(rows))
            self.n_iter_ += 1
            total = 0.0
            score = None
            if held_out is not None:
                outputs = np.concatenate(list(self._blocks(held_out[0])))
                score = self._validation_score(outputs, *held_out[1:])
            if progress.ends(self.loss_curve_[-1], score):
                break
        progress.finish()
        self.loss_ = self.loss_curve_[-1]
        self.best_loss_ = min(self.loss_curve_) if held_out is None else None
        self.validation_scores_ = progress.scores if held_out is not None else None
        self.best_validation_score_ = max(progress.scores) if held_out is not None else None

    # -- Outputs ---------------------------------------------------------------------------------------------

    def _blocks(self, rows: Activations) -> Iterator[Array]:
        """Yield the outputs of the network for some rows at a time."""
        sparse = isinstance(rows, SparseRows)
        wide = [layer.out_features or 1 for _, layer in self.model_.walk()]
        size = max(1, min(1024, HELD // max(*wide, 1 if sparse else rows.shape[1])))
        for start in range(0, len(rows), size):
            with np.errstate(all="ignore"):  # what overflows is infinite, and shows
                y = self.model_.forward(take(rows, slice(start, start + size)))[0]
            yield y.to_dense() if isinstance(y, SparseRows) else y

    def _read(self, X: Any) -> Activations:
        """Check samples to predict for."""
        check_is_fitted(self)
        X = validate_data(
            self,
            readable(X),
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=(np.float64, np.float32),
            reset=False,
        )
        return as_rows(X, self._dtype)

    def _outputs(self, X: Any) -> Array:
        return np.concatenate(list(self._blocks(self._read(X))))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: sparse X is taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
