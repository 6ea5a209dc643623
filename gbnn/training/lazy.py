"""The update of a step: of all values, or of touched edges only, which leaves the others something owed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.semirings import TouchedGradient
from gbnn.training.catch_up import LinearTable, ReplayTable
from gbnn.training.idle import Idle, Table
from gbnn.training.transform import BLOCK, Transform
from gbnn.weights import Weights

if TYPE_CHECKING:
    from gbnn.training.state import State

__all__ = ["Backlog", "numbers", "update"]

Array = np.ndarray[Any, Any]

FEW = 16
"""It is worth to be lazy where a gradient touches at most one in so many edges (`benchmarks/lazy.py`)."""


class Backlog:
    """The steps that edges of one layer have missed: what `Weights.pending` calls to bring them up to date.

    Parameters
    ----------
    name : str
        The parameter.
    weights : Weights
    slots : dict of str to ndarray
        The optimizer's, of this parameter; brought up to date with the values.
    optimizer : Transform
    idle : Idle
        What its steps do without a gradient.

    Notes
    -----
    Beside the tables of `catch_up` it takes two bytes an edge: how many of the steps noted each has had.
    """

    def __init__(
        self, name: str, weights: Weights, slots: dict[str, Array], optimizer: Transform, idle: Idle
    ) -> None:
        self.weights, self.slots, self.optimizer = weights, slots, optimizer
        self._table = _table(name, slots, optimizer, idle)
        self._seen = np.empty(0, dtype=np.uint16)
        self._count = 0

    def __call__(self, values: Array, positions: Array | None) -> None:
        """Bring edges up to date: those at `positions`, or all, in blocks."""
        if positions is not None:
            self._table.catch_up(values, self.slots, positions, self._seen, self._count)
            return
        for start in range(0, values.size, BLOCK):
            block = np.arange(start, min(start + BLOCK, values.size))
            self._table.catch_up(values, self.slots, block, self._seen, self._count)
        self._seen[:] = 0
        self._count = 0
        self._table.clear()

    def note(self, step: int, positions: Array) -> None:
        """Note that a step has been done, for the edges at `positions` only."""
        if self.weights.pending is not self:  # so all edges are up to date
            if self._seen.size != self.weights.nnz:
                self._seen = np.zeros(self.weights.nnz, dtype=np.uint16)
            self.weights.pending = self
        self._table.note(step)
        self._count += 1
        self._seen[positions] = self._count
        if self._count == self._table.span:
            self.weights.settle()


def _table(name: str, slots: dict[str, Array], optimizer: Transform, idle: Idle) -> Table:
    if idle.closed is not None:
        return idle.closed("")
    return LinearTable(optimizer, name, slots) if idle.linear else ReplayTable(optimizer, name)


def update(
    parameters: Mapping[str, Any], gradients: Mapping[str, Any], optimizer: Transform, state: State
) -> None:
    """Update a model's parameters and the optimizer's slots, in place: the step `state.step`.

    Of weights whose gradient is a `TouchedGradient` only the touched edges are updated, where the optimizer
    can do so: O(touched). The others are owed the step (`Weights.pending`). So it is with an array (a bias)
    where nothing is owed; an array cannot be brought up to date when somebody looks at it.

    Parameters
    ----------
    parameters : mapping
        ``model.parameters()``.
    gradients : mapping
        What the pullback returned.
    optimizer : Transform
    state : State
    """
    owed = state.raw_slots
    given: dict[str, Any] = {}
    slots: dict[str, dict[str, Array]] = dict(owed)
    values: dict[str, Array] = {}
    lazy: dict[str, tuple[Array, Idle]] = {}
    for name, parameter in parameters.items():
        given[name] = gradient = gradients[name]
        idle = _lazily(optimizer, name, parameter, gradient)
        if idle is not None:
            at = gradient.positions
            lazy[name] = at, idle
            if isinstance(parameter, Weights):
                parameter.settle(at)
                parameter = parameter.raw
            given[name], values[name] = gradient.values, parameter.take(at)
            own = owed.get(name, {})
            slots[name] = {slot: _at(name, slot, array, parameter, at) for slot, array in own.items()}
        else:  # this settles all that was owed, slots included
            values[name] = parameter.values if isinstance(parameter, Weights) else parameter
    updates = optimizer.update(given, slots, values, state.step)
    for name, parameter in parameters.items():
        if name in lazy:
            at, idle = lazy[name]
            values[name] += updates[name]
            if isinstance(parameter, Weights):
                parameter.assign_at(at, values[name])
            else:
                parameter[at] = values[name]
            for slot, array in slots[name].items():
                owed[name][slot][at] = array
            if not idle.still:
                _backlog(name, parameter, optimizer, idle, state).note(state.step, at)
        elif isinstance(parameter, Weights):
            parameter.add(updates[name])
        else:
            parameter += updates[name]


def numbers(gradient: Any) -> Array:
    """Return what a gradient holds besides zeros that go without saying: an array to look at.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.semirings import TouchedGradient
    >>> from gbnn.training.lazy import numbers
    >>> numbers(TouchedGradient(np.array([1]), np.array([0.5]), 10**12))
    array([0.5])
    """
    return gradient.values if isinstance(gradient, TouchedGradient) else np.asarray(gradient)


def _lazily(optimizer: Transform, name: str, parameter: Any, gradient: Any) -> Idle | None:
    """Return what untouched values are owed, or None where all are to be updated."""
    if optimizer.lazy is False or not isinstance(gradient, TouchedGradient):
        return None
    size = parameter.nnz if isinstance(parameter, Weights) else parameter.size
    if gradient.shape != (size,):  # which the optimizer refuses
        return None
    if optimizer.lazy is None and gradient.positions.size * FEW > size:
        return None
    idle = optimizer.idle(name)
    return idle if idle is not None and (idle.still or isinstance(parameter, Weights)) else None


def _at(name: str, slot: str, array: Array, values: Array, positions: Array) -> Array:
    """Return what a slot holds at some positions."""
    if array.shape != values.shape:  # left behind by a rewiring
        raise ArgumentError(f"{slot} of {name}", f"shape {values.shape}", array.shape)
    return array.take(positions)


def _backlog(name: str, weights: Weights, optimizer: Transform, idle: Idle, state: State) -> Backlog:
    """Return the backlog of a parameter: the one there is, unless it belongs to another training."""
    known, slots = state.backlogs.get(name), state.raw_slots[name]
    if (
        known is not None
        and known.weights is weights
        and known.optimizer is optimizer
        and known.slots is slots
    ):
        return known
    if known is not None:
        known.weights.settle()
    state.backlogs[name] = Backlog(name, weights, slots, optimizer, idle)
    return state.backlogs[name]
