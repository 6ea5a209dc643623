"""`State`, what training keeps between steps, and `Step`, what it says after each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, GbnnError, KindError, generator
from gbnn.layers import Layer
from gbnn.losses import Loss
from gbnn.topology import Memory, Rewired
from gbnn.training.lazy import Backlog
from gbnn.training.transform import Transform
from gbnn.weights import Weights

__all__ = ["State", "Step", "check_apart", "check_loss", "check_model", "model_dtype", "naming", "values"]

Array = np.ndarray[Any, Any]


class State:
    """What training keeps between steps, beside the model: save it to go on later.

    Attributes
    ----------
    slots : dict
        Parameter -> slot -> array: the optimizer's state. It follows edges when they move. Reading it here
        brings it up to date where the optimizer is lazy, and the weights with it; an array that was read
        before a step is not.
    step : int
        Steps done.
    generator : numpy.random.Generator
        Where rewiring draws from.
    memory : dict
        Parameter -> `topology.Memory`: what rewiring remembers of each layer.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.training import State, adam
    >>> state = State.start(models.mlp([8, 20, 2], density=0.2), adam())
    >>> sorted(state.slots["0.weights"]), state.step
    (['momentum', 'square'], 0)
    """

    def __init__(
        self,
        slots: dict[str, dict[str, Array]],
        step: int,
        generator: np.random.Generator,
        memory: dict[str, Memory] | None = None,
    ) -> None:
        self.raw_slots = slots
        self.step = step
        self.generator = generator
        self.memory: dict[str, Memory] = {} if memory is None else memory
        self.backlogs: dict[str, Backlog] = {}

    @property
    def slots(self) -> dict[str, dict[str, Array]]:
        """The optimizer's state, all of it up to date; `raw_slots` where what is owed does not matter."""
        self.settle()
        return self.raw_slots

    @slots.setter
    def slots(self, slots: dict[str, dict[str, Array]]) -> None:
        self.settle()
        self.raw_slots = slots

    def settle(self) -> None:
        """Bring slots and weights up to date (`Weights.settle`): O(nnz) if any edge was left for later."""
        for backlog in self.backlogs.values():
            if backlog.weights.pending is backlog:
                backlog.weights.settle()

    # A copy is of what is settled; what is owed belongs to the model at hand.
    def __getstate__(self) -> dict[str, Any]:
        self.settle()
        return self.__dict__ | {"backlogs": {}}

    def __repr__(self) -> str:
        return f"State(step={self.step}, parameters={sorted(self.raw_slots)})"

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
    dtypes: list[np.dtype[Any]] = [parameter.dtype for parameter in model.parameters().values()]
    return dtypes[0] if dtypes else np.dtype(np.float32)


def check_model(model: Any) -> None:
    """Raise KindError unless `model` is a Layer."""
    if not isinstance(model, Layer):
        raise KindError("model", "a gbnn Layer", type(model).__name__)


def check_apart(model: Layer) -> None:
    """Raise ArgumentError if two layers of a model share a parameter.

    Each would train it with optimizer state of its own, which is not the step of either optimizer.
    """
    first: dict[int, str] = {}
    for name, parameter in model.parameters().items():
        if (other := first.setdefault(id(parameter), name)) != name:
            raise ArgumentError("model", "layers that share no parameters", f"{other!r} as {name!r}, too")


def check_loss(loss: Any) -> None:
    """Raise KindError unless `loss` is a Loss."""
    if not isinstance(loss, Loss):
        raise KindError("loss", "a gbnn loss, such as losses.cross_entropy", type(loss).__name__)


@contextlib.contextmanager
def naming(place: str) -> Iterator[None]:
    """Have gbnn's errors name this place, too: ``"target, epoch 0, batch 3"``."""
    try:
        yield
    except GbnnError as error:
        error.where = f"{error.where}, {place}"
        error.args = (error.where, error.expected, error.got)
        raise
