"""`fit`: epochs of `train` with validation, a progress bar, callbacks and a history."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from gbnn.data import Batches, MappedRows
from gbnn.errors import ArgumentError, KindError, check_int, generator
from gbnn.layers import Layer, Scores
from gbnn.losses import Loss, cross_entropy
from gbnn.topology import Rewirer
from gbnn.training.evaluate import evaluate, in_order, pair, rows_of
from gbnn.training.history import History
from gbnn.training.loop import train
from gbnn.training.state import State, Step, check_loss, check_model, model_dtype, naming
from gbnn.training.transform import Transform

__all__ = ["Callback", "EpochEnd", "Event", "fit"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class EpochEnd:
    """The end of an epoch.

    Attributes
    ----------
    epoch, epochs : int
    metrics : dict of str to float
        The epoch's row of the history.
    model : Layer
    state : State
    history : History

    Examples
    --------
    A callback that stops at a loss of 0.1:

    >>> from gbnn.training import EpochEnd
    >>> def good_enough(event):
    ...     return isinstance(event, EpochEnd) and event.metrics["loss"] < 0.1
    """

    epoch: int
    epochs: int
    metrics: dict[str, Any]
    model: Layer
    state: State
    history: History


Event = Step | EpochEnd
Callback = Callable[[Event], bool | None]
"""Called after every step and every epoch; True ends training."""


def fit(
    model: Layer,
    data: tuple[Any, Any] | Iterable[tuple[Any, Any]],
    *,
    epochs: int = 10,
    batch_size: int = 128,
    validation: tuple[Any, Any] | None = None,
    loss: Loss = cross_entropy,
    optimizer: Transform | None = None,
    rewiring: Rewirer | None = None,
    callbacks: Sequence[Callback] = (),
    seed: int | np.random.Generator = 0,
    state: State | None = None,
    progress: bool | None = None,
) -> History:
    """Train a model in place for some epochs.

    Parameters
    ----------
    model : Layer
    data : (x, target), or an iterable of batches
        A tuple of anything `gbnn.data.Batches` takes: arrays, sparse matrices, or what `gbnn.data.open_csr`
        gives, shapes (rows, in_features) and (rows,) or (rows, outputs). Or anything else that `train` takes:
        a `gbnn.data.Stream`, batches of your own (a generator is good for one epoch).
    epochs, batch_size : int
    validation : (x, target), optional
        Evaluated after each epoch.
    loss, optimizer, rewiring, state
        As in `train`.
    callbacks : sequence of callable
        ``callback(event)`` after every step and every epoch; one that returns True ends training.
    seed : int or numpy.random.Generator
        For the order of the rows and for rewiring.
    progress : bool, optional
        Show a progress bar on standard error; None shows it on a terminal only.

    Returns
    -------
    History

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If the data do not fit the model or the loss, are empty, or hold NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import models, training
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((300, 20)); y = (x[:, 0] > 0).astype(int)
    >>> model = models.mlp([20, 100, 2], nnz=500, seed=0)
    >>> history = training.fit(
    ...     model,
    ...     (x[:200], y[:200]),
    ...     epochs=20,
    ...     validation=(x[200:], y[200:]),
    ...     optimizer=training.adam(1e-2),
    ... )
    >>> history["val_accuracy"][-1] > 0.8
    True
    """
    check_model(model)
    check_loss(loss)
    check_int("epochs", epochs, 1)
    for i, callback in enumerate(_listed(callbacks)):
        if not callable(callback):
            raise KindError(f"callbacks[{i}]", "a function of an event", type(callback).__name__)
    rng = generator("seed", seed)
    batches = _batches(model, data, loss, batch_size, rng)
    if validation is not None:
        xv, tv = pair("validation", validation)
        with naming("validation"):
            loss.check_target(tv, in_order(model, xv).rows, model.out_features)
    steps = train(
        model,
        batches,
        loss=loss,
        optimizer=optimizer,
        rewiring=rewiring,
        epochs=epochs,
        # A generator of its own, so that rewiring or not sees the rows in the same order.
        seed=int(rng.integers(2**63)),
        state=state,
    )
    history = History()
    total = len(batches) * epochs if isinstance(batches, Sized) else None
    # Without standard error (a closed stream) there is nowhere to show it.
    hidden = True if sys.stderr is None else None if progress is None else not progress
    with tqdm(total=total, disable=hidden, unit="batch") as bar:
        tally = _Tally(model)
        for step in steps:
            tally.add(step)
            history.note(step)
            bar.update()
            if bar.n % 10 == 0 or step.last_in_epoch:
                bar.set_postfix(tally.shown(), refresh=False)
            heard = [callback(step) for callback in callbacks]
            if step.last_in_epoch:
                row = tally.row(step)
                if validation is not None:
                    results = evaluate(model, validation, loss=loss)
                    row |= {f"val_{name}": value for name, value in results.items()}
                history.rows.append(row)
                end = EpochEnd(step.epoch, epochs, row, model, step.state, history)
                heard += [callback(end) for callback in callbacks]
                tally = _Tally(model)
            if any(heard):  # only now: every callback hears of every event
                break
            del step  # and the batch's outputs with it, before the next ones are made
    return history


def _listed(callbacks: Any) -> Sequence[Any]:
    if not isinstance(callbacks, Sequence):
        raise KindError("callbacks", "a list of functions", type(callbacks).__name__)
    return callbacks


def _batches(
    model: Layer, data: Any, loss: Loss, batch_size: int, rng: np.random.Generator
) -> Iterable[tuple[Any, Any]]:
    if not isinstance(data, tuple):
        if not isinstance(data, Iterable):
            raise KindError("data", "a pair (x, target) or an iterable of batches", type(data).__name__)
        return data
    x, target = pair("data", data)
    if not isinstance(target, MappedRows):  # rows on disk are checked batch by batch
        target = loss.check_target(target, rows_of("x", x), model.out_features)
    batches = Batches(x, target, batch_size, seed=rng, dtype=model_dtype(model))
    if model.in_features is not None and batches.features != model.in_features:
        raise ArgumentError("x", f"{model.in_features} columns, the model's inputs", batches.features)
    return batches


class _Tally:
    """Running means over an epoch."""

    def __init__(self, model: Layer) -> None:
        self.model = model
        self.began = time.perf_counter()
        self.rows = 0
        self.sums: dict[str, tuple[float, int]] = {}
        self.dropped = self.grown = self.regrown = 0

    def add(self, step: Step) -> None:
        self.rows += step.rows
        # Of scores of many labels nobody knows the best but by computing them all.
        metrics = {} if isinstance(step.outputs, Scores) else step.metrics()
        for name, value in {"loss": step.loss, **metrics}.items():
            total, rows = self.sums.get(name, (0.0, 0))
            if not math.isnan(value):  # as the r2 of a single row is
                total, rows = total + value * step.rows, rows + step.rows
            self.sums[name] = total, rows
        for done in step.changes:
            self.dropped += done.change.dropped
            self.grown += done.change.grown
            self.regrown += done.regrown

    def means(self) -> dict[str, float]:
        return {name: total / rows if rows else math.nan for name, (total, rows) in self.sums.items()}

    def edges_per_second(self) -> float:
        """Edges times samples, by the second: how many edge activations the training steps got through."""
        return self.model.nnz * self.rows / max(time.perf_counter() - self.began, 1e-9)

    def shown(self) -> dict[str, str]:
        means = {name: f"{value:.4f}" for name, value in self.means().items()}
        return means | {"edges/s": f"{self.edges_per_second():.2e}"}

    def row(self, step: Step) -> dict[str, Any]:
        rewired = {"dropped": self.dropped, "grown": self.grown, "regrown": self.regrown}
        return {
            "epoch": step.epoch,
            **self.means(),
            "seconds": time.perf_counter() - self.began,
            "edges_per_second": self.edges_per_second(),
            "nnz": self.model.nnz,
            **rewired,
        }
