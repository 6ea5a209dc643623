"""`train`: the loop itself, a generator of `Step`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np

from gbnn.data import Batches
from gbnn.errors import ArgumentError, KindError, NonFiniteError, check_finite, check_int
from gbnn.layers import Chain, Concatenate, Gradients, Layer, Parallel, Residual, Scores, as_activations
from gbnn.losses import Loss, cross_entropy
from gbnn.rows import stored
from gbnn.topology import Clock, Rewired, Rewirer, sites
from gbnn.training.lazy import numbers, update
from gbnn.training.optimizers import adam
from gbnn.training.state import (
    State,
    Step,
    check_apart,
    check_loss,
    check_model,
    model_dtype,
    naming,
    values,
)
from gbnn.training.transform import Transform
from gbnn.weights import Weights

__all__ = ["State", "Step", "model_dtype", "train", "values"]

Array = np.ndarray[Any, Any]


def train(
    model: Layer,
    batches: Iterable[tuple[Any, Any]],
    *,
    loss: Loss = cross_entropy,
    optimizer: Transform | None = None,
    rewiring: Rewirer | None = None,
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
        (batch, in_features): an array, a `graphblas.Matrix`, a SciPy sparse matrix or `SparseRows`.
    loss : Loss
        Default `losses.cross_entropy`.
    optimizer : Transform
        Default `adam(1e-3)`.
    rewiring : Rewirer, optional
        Moves edges while training: `topology.set_()`, `topology.rigl()`, any `topology.Rewiring`.
    epochs : int
    seed : int or numpy.random.Generator
        For rewiring.
    state : State, optional
        To go on from: `Step.state`, or one loaded from a file. It is changed in place.

    Yields
    ------
    Step

    Raises
    ------
    NonFiniteError
        If a batch, the loss or a gradient holds NaN or infinity; it names the batch and the layer.
    ArgumentError, KindError
        If a batch does not fit the model or the loss, or layers of the model share parameters.

    Notes
    -----
    What is raised over a batch names it. If it is the batch, the loss or a gradient, nothing of that batch is
    trained on: parameters and buffers are as they were before it. (A rewiring rule that fails may do so after
    the update.)

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
    check_model(model)
    check_apart(model)
    check_loss(loss)
    check_int("epochs", epochs, 1)
    if not isinstance(batches, Iterable):
        raise KindError("batches", "an iterable of pairs (x, target)", type(batches).__name__)
    optimizer = adam() if optimizer is None else optimizer
    for name, value, kind in (
        ("optimizer", optimizer, Transform),
        ("rewiring", rewiring, Rewirer | None),
        ("state", state, State | None),
    ):
        if not isinstance(value, kind) or isinstance(value, type):
            wanted = "State" if name == "state" else f"{name}, such as {_EXAMPLES[name]}"
            raise KindError(name, f"a gbnn {wanted}", type(value).__name__)
    if rewiring is not None and not any(isinstance(p, Weights) for p in model.parameters().values()):
        wanted = "a model that has layers of edges (mlp makes a layer that gets every edge Dense)"
        raise ArgumentError("rewiring", wanted, "none")
    state = State.start(model, optimizer, seed) if state is None else state
    return _steps(model, batches, loss, optimizer, rewiring, epochs, state)


_EXAMPLES = {"optimizer": "training.adam()", "rewiring": "topology.set_()"}


def _steps(
    model: Layer,
    batches: Iterable[tuple[Any, Any]],
    loss: Loss,
    optimizer: Transform,
    rewiring: Rewirer | None,
    epochs: int,
    state: State,
) -> Iterator[Step]:
    # Steps done before count, so that a share of all steps means the same where training goes on.
    total = state.step + len(batches) * epochs if isinstance(batches, Sized) else None
    dtype = model_dtype(model)
    # The rows of Batches were checked when it was made, in its own dtype.
    checked = isinstance(batches, Batches) and batches.dtype == dtype
    for epoch in range(epochs):
        count = 0
        for batch, last in _with_last(batches):
            with naming(f"epoch {epoch}, batch {count}"):
                x, target = _pair(batch)
                x = as_activations("x", x, model.in_features, dtype)
                if not checked:
                    check_finite("x", stored(x))
                clock = Clock(state.step, epoch, epochs, last, total)
                step = _step(model, x, target, loss, optimizer, rewiring, state, clock)
            del batch, x, target
            yield step
            del step  # nothing of this batch is held here while the next one is made
            count += 1
        if not count:
            raise ArgumentError(
                "batches",
                "at least one batch in each epoch",
                f"none in epoch {epoch} (a generator gives its batches once)",
            )


def _step(
    model: Layer,
    x: Any,
    target: Any,
    loss: Loss,
    optimizer: Transform,
    rewiring: Rewirer | None,
    state: State,
    clock: Clock,
) -> Step:
    y, value, gradients = _differentiated(model, x, target, loss)
    parameters = model.parameters()
    rewires = rewiring is not None and rewiring.due(clock)
    if rewiring is None or not rewiring.skips_update(clock):
        update(parameters, gradients, optimizer, state)
    changes: tuple[Rewired, ...] = ()
    if rewiring is not None and (rewires or rewiring.watches):
        # Watching reads no slots, so that what a lazy optimizer owes can wait.
        slots = state.slots if rewires else state.raw_slots
        places = sites(parameters, gradients, slots, state.memory, model)
        if rewiring.watches:
            rewiring.watch(places, clock, state.generator)
        if rewires:
            changes = tuple(rewiring.apply(places, clock, state.generator))
    state.step += 1
    where = clock.step, clock.epoch, clock.last_in_epoch
    return Step(*where, len(x), value, model, changes, state, y, target, loss)


def _differentiated(model: Layer, x: Any, target: Any, loss: Loss) -> tuple[Any, float, Gradients]:
    """Return outputs, loss and gradients of a batch, all finite; else raise and leave the model as it was."""
    buffers = {name: array.copy() for name, array in model.buffers().items()}
    try:
        # Numbers that are not finite are looked for here, so no layer needs to warn of them.
        with np.errstate(all="ignore"):
            y, pullback = model.forward(x, training=True)
            value, loss_pullback = loss(y, target)
            if not math.isfinite(value):
                raise NonFiniteError("loss", "a finite number", f"{value}{_blame(model, x)}")
            dy = loss_pullback()
            del loss_pullback  # and what it holds
            _, gradients = pullback(dy, inputs=False)
            # From the output back: the first that is not finite is where it began.
            for name in reversed(gradients):
                check_finite(f"gradient of {name}", numbers(gradients[name]))
    except BaseException:
        for name, array in model.buffers().items():
            np.copyto(array, buffers[name])
        raise
    return y, value, gradients


def _with_last(batches: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """Yield each item and whether it is the last."""
    if isinstance(batches, Batches):  # the length is known, so no batch is held while the next is made
        left = len(batches)
        for batch in batches:
            left -= 1
            yield batch, left == 0
            del batch
        return
    iterator = iter(batches)
    try:
        current = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield current, False
        current = following
    yield current, True


def _pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, tuple | list):
        raise KindError("batches", "pairs (x, target)", type(batch).__name__)
    if len(batch) != 2:
        raise ArgumentError("batches", "pairs (x, target)", f"a {type(batch).__name__} of {len(batch)}")
    if batch[1] is None:
        raise ArgumentError("batches", "a target to train on", None)
    return batch[0], batch[1]


def _finite(y: Any) -> bool:
    """Whether an output is; that of many labels is not computed, so what it is computed from."""
    return bool(np.isfinite(stored(y.h if isinstance(y, Scores) else y)).all())


def _blame(model: Layer, x: Any) -> str:
    """Say which layer is the first whose output is not finite."""
    if _finite(model.forward(x, training=True)[0]):
        return ", though every output is finite"
    path, layer = _first_bad(model, x, "")
    return f", and layer {path or 'model'} ({layer.kind}) is the first whose output is not"


def _first_bad(layer: Layer, x: Any, path: str) -> tuple[str, Layer]:
    """Follow `x` through a layer whose output is not finite to the innermost layer where that begins."""
    if isinstance(layer, (Chain, Concatenate, Parallel, Residual)):
        for name, child in layer.children().items():
            y = child.forward(x, training=True)[0]
            if not _finite(y):
                return _first_bad(child, x, f"{path}.{name}" if path else name)
            x = y if isinstance(layer, Chain) else x
    return path, layer
