"""`train`: the loop itself, a generator of `Step`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.data import Batches
from gbnn.errors import ArgumentError, KindError, NonFiniteError, check_finite, check_int, generator
from gbnn.layers import Chain, Layer, as_batch
from gbnn.losses import Loss, cross_entropy
from gbnn.topology import Clock, Rewired, Rewiring, sites
from gbnn.training.optimizers import Transform, adam
from gbnn.weights import Weights

__all__ = ["State", "Step", "model_dtype", "train"]

Array = np.ndarray[Any, Any]


@dataclass
class State:
    """What training keeps between steps, beside the model: save it to go on later.

    Attributes
    ----------
    slots : dict
        Parameter -> slot -> array: the optimizer's state. It follows edges when they move.
    step : int
        Steps done.
    generator : numpy.random.Generator
        Where rewiring draws from.
    """

    slots: dict[str, dict[str, Array]]
    step: int
    generator: np.random.Generator

    @classmethod
    def start(cls, model: Layer, optimizer: Transform, seed: int | np.random.Generator = 0) -> State:
        """Return the state before the first step."""
        return cls(optimizer.start(values(model)), 0, generator("seed", seed))


@dataclass(frozen=True)
class Step:
    """One batch trained on.

    Attributes
    ----------
    index : int
        Number of the step, from 0, over all epochs.
    epoch : int
    last_in_epoch : bool
    rows : int
        Samples in the batch.
    loss : float
        Mean loss of the batch, before its update.
    model : Layer
    changes : tuple of Rewired
        What a rewiring at this step did, a layer each; empty if there was none.
    state : State
    """

    index: int
    epoch: int
    last_in_epoch: bool
    rows: int
    loss: float
    model: Layer
    changes: tuple[Rewired, ...]
    state: State
    outputs: Array
    target: Any
    loss_function: Loss

    def metrics(self) -> dict[str, float]:
        """Return the loss's metrics of this batch (accuracy, for classes); computed when asked."""
        return self.loss_function.metrics(self.outputs, self.target)


def values(model: Layer) -> dict[str, Array]:
    """Return the arrays of all parameters by name; those of edges have shape (nnz,)."""
    return {n: p.values if isinstance(p, Weights) else p for n, p in model.parameters().items()}


def model_dtype(model: Layer) -> np.dtype[Any]:
    """Return the dtype of a model's parameters; float32 if it has none."""
    for array in values(model).values():
        return array.dtype
    return np.dtype(np.float32)


def train(
    model: Layer,
    batches: Iterable[tuple[Any, Any]],
    *,
    loss: Loss = cross_entropy,
    optimizer: Transform | None = None,
    rewiring: Rewiring | None = None,
    epochs: int = 1,
    seed: int | np.random.Generator = 0,
    state: State | None = None,
) -> Iterator[Step]:
    """Train a model in place; every batch is a step that is yielded once it is done.

    Parameters
    ----------
    model : Layer
    batches : iterable of (x, target)
        Iterated once an epoch: `data.batches(...)`, a list, or anything of the user's own. x has shape
        (batch, in_features).
    loss : Loss
        Default `losses.cross_entropy`.
    optimizer : Transform
        Default `adam(1e-3)`.
    rewiring : Rewiring, optional
        Moves edges while training: `topology.set_()`, `topology.rigl()`.
    epochs : int
    seed : int or numpy.random.Generator
        For rewiring.
    state : State, optional
        To go on from: `Step.state`, or one loaded from a file.

    Yields
    ------
    Step

    Raises
    ------
    NonFiniteError
        If a batch, the loss or a gradient holds NaN or infinity; it names the batch and the layer. Nothing
        of that batch is trained on.
    ArgumentError, KindError
        If a batch does not fit the model or the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import data, models, training
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((200, 20)); y = (x[:, 0] > 0).astype(int)
    >>> model = models.mlp([20, 50, 2], density=0.2, seed=0)
    >>> batches = data.batches(x, y, batch_size=20)
    >>> for step in training.train(model, batches, optimizer=training.adam(1e-2), epochs=10):
    ...     pass
    >>> step.index, step.loss < 0.3
    (99, True)
    """
    if not isinstance(model, Layer):
        raise KindError("model", "a gbnn Layer", type(model).__name__)
    if not isinstance(loss, Loss):
        raise KindError("loss", "a gbnn loss, such as losses.cross_entropy", type(loss).__name__)
    check_int("epochs", epochs, 1)
    optimizer = adam() if optimizer is None else optimizer
    state = State.start(model, optimizer, seed) if state is None else state
    return _steps(model, batches, loss, optimizer, rewiring, epochs, state)


def _steps(
    model: Layer,
    batches: Iterable[tuple[Any, Any]],
    loss: Loss,
    optimizer: Transform,
    rewiring: Rewiring | None,
    epochs: int,
    state: State,
) -> Iterator[Step]:
    total = len(batches) * epochs if hasattr(batches, "__len__") else None
    dtype = model_dtype(model)
    for epoch in range(epochs):
        count = 0
        for number, (batch, last) in enumerate(_with_last(batches)):
            where = f"epoch {epoch}, batch {number}"
            x, target = _pair(batch, where)
            x = as_batch(f"x of {where}", x, model.in_features, dtype)
            if not isinstance(batches, Batches):  # whose rows were checked when it was made
                check_finite(f"x of {where}", x)
            clock = Clock(state.step, epoch, epochs, last, total)
            yield _step(model, x, target, loss, optimizer, rewiring, state, clock, where)
            count += 1
        if not count:
            raise ArgumentError("batches", "at least one batch in each epoch", f"none in epoch {epoch}")


def _step(
    model: Layer,
    x: Array,
    target: Any,
    loss: Loss,
    optimizer: Transform,
    rewiring: Rewiring | None,
    state: State,
    clock: Clock,
    where: str,
) -> Step:
    y, pullback = model.forward(x, training=True)
    value, loss_pullback = loss(y, target)
    if not math.isfinite(value):
        raise NonFiniteError(f"loss of {where}", "a finite number", f"{value}{_first_bad_layer(model, x)}")
    _, gradients = pullback(loss_pullback(), inputs=False)
    parameters = model.parameters()
    for name, gradient in gradients.items():
        check_finite(f"gradient of {name} in {where}", np.asarray(gradient))
    rewires = rewiring is not None and rewiring.when(clock)
    if not (rewires and rewiring is not None and rewiring.replaces_update):
        for name, update in optimizer.update(gradients, state.slots, values(model), state.step).items():
            parameter = parameters[name]
            if isinstance(parameter, Weights):
                parameter.add(update)
            else:
                parameter += update
    changes: tuple[Rewired, ...] = ()
    if rewires and rewiring is not None:
        places = sites(parameters, gradients, state.slots)
        changes = tuple(rewiring.apply(places, clock, state.generator))
    state.step += 1
    return Step(
        clock.step, clock.epoch, clock.last_in_epoch, x.shape[0], value, model, changes, state, y, target, loss
    )


def _with_last(batches: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """Yield each item and whether it is the last."""
    iterator = iter(batches)
    try:
        current = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield current, False
        current = following
    yield current, True


def _pair(batch: Any, where: str) -> tuple[Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise KindError(f"batches, {where}", "a pair (x, target)", type(batch).__name__)
    if batch[1] is None:
        raise ArgumentError(f"batches, {where}", "a target to train on", None)
    return batch[0], batch[1]


def _first_bad_layer(model: Layer, x: Array) -> str:
    """Say which layer is the first whose output is not finite, by running the layers one by one."""
    path, layer = "", model
    while True:
        children = list(layer.children().items()) if isinstance(layer, Chain) else []
        for name, child in children:
            y, _ = child.forward(x, training=True)
            if not np.isfinite(y).all():
                path, layer = f"{path}.{name}" if path else name, child
                break
            x = y
        else:
            break
    if np.isfinite(layer.forward(x, training=True)[0]).all():
        return ", though every layer's output is finite"
    return f", and layer {path or 'model'} ({layer.kind}) is the first whose output is not"
