"""The update of a step: of all values, or of touched edges only, which leaves the others something owed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gbnn.edges import check_indices
from gbnn.errors import ArgumentError
from gbnn.semirings import TouchedGradient, kernels
from gbnn.training import in_place, step_kernels
from gbnn.training.catch_up import LinearTable, ReplayTable
from gbnn.training.idle import Idle, Table
from gbnn.training.in_place import InPlaceStep
from gbnn.training.step_kernels import read_only
from gbnn.training.transform import Transform
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
        """Bring edges up to date: those at `positions`, or all."""
        self._table.catch_up(values, self.slots, positions, self._seen, self._count)
        if positions is None:
            self._seen[:] = 0
            self._count = 0
            self._table.clear()

    def note(self, step: int, positions: Array, ascending: bool) -> None:
        """Note that a step has been done, for the edges at `positions` only (`ascending`: each once)."""
        if self.weights.pending is not self:  # so all edges are up to date
            if self._seen.size != self.weights.nnz:
                self._seen = np.zeros(self.weights.nnz, dtype=np.uint16)
            self.weights.pending = self
        self._table.note(step)
        self._count += 1
        if ascending:
            kernels.start(step_kernels.mark, positions.size, read_only(positions), self._seen, self._count)
        else:
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
    with contextlib.ExitStack() as locks:
        for parameter in parameters.values():
            if isinstance(parameter, Weights):  # who reads it in another thread settles before or after
                locks.enter_context(parameter.lock)
        _update(parameters, gradients, optimizer, state)


def _update(
    parameters: Mapping[str, Any], gradients: Mapping[str, Any], optimizer: Transform, state: State
) -> None:
    owed = state.raw_slots
    given: dict[str, Any] = {}
    slots: dict[str, dict[str, Array]] = dict(owed)
    values: dict[str, Array] = {}
    lazy: dict[str, tuple[TouchedGradient, Idle, bool]] = {}
    compiled: list[InPlaceStep] = []
    for name, parameter in parameters.items():
        given[name] = gradient = gradients[name]
        idle, own = _lazily(optimizer, name, parameter, gradient), owed.get(name, {})
        if idle is not None:
            array = parameter.raw if isinstance(parameter, Weights) else parameter
            _check(name, own, array)
            step = in_place.touched(optimizer.in_place, name, parameter, gradient, own)
            lazy[name] = gradient, idle, step is not None
            if step is None:
                at = check_indices(f"positions of the gradient of {name}", gradient.positions, array.size)
                if isinstance(parameter, Weights):
                    parameter.settle(at)
                given[name], values[name] = gradient.values, array.take(at)
                slots[name] = {slot: array.take(at) for slot, array in own.items()}
        else:
            step = in_place.whole(optimizer.in_place, name, parameter, gradient, own)
            if step is None:  # this settles all that was owed, slots included
                values[name] = parameter.values if isinstance(parameter, Weights) else parameter
        if step is not None:
            compiled.append(step)
            del given[name]
            slots.pop(name, None)
    updates = optimizer.update(given, slots, values, state.step)  # it refuses before anything is changed
    for step in compiled:
        step.take(state.step)
    for name, parameter in parameters.items():
        gradient, idle, ascending = lazy.get(name, (None, None, False))
        where = None if gradient is None else gradient.positions
        if name in values:
            _put(parameter, where, updates[name], values[name])
            if where is not None:
                for slot, array in slots[name].items():
                    owed[name][slot][where] = array
        if where is not None and idle is not None and not idle.still:
            _backlog(name, parameter, optimizer, idle, state).note(state.step, where, ascending)


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


def _check(name: str, slots: Mapping[str, Array], values: Array) -> None:
    """Raise unless all slots have the shape of the values, which one left behind by a rewiring has not."""
    for slot, array in slots.items():
        if array.shape != values.shape:
            raise ArgumentError(f"{slot} of {name}", f"shape {values.shape}", array.shape)


def _put(parameter: Any, at: Array | None, update: Array, values: Array) -> None:
    """Add an update to all values of a parameter, or to those at some positions, which were `values`."""
    if at is None:
        if isinstance(parameter, Weights):
            parameter.add(update)
        else:
            parameter += update
        return
    values += update
    if isinstance(parameter, Weights):
        parameter.assign_at(at, values)
    else:
        parameter[at] = values


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
