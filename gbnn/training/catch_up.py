"""Tables of what steps without a gradient do to an edge: linear maps, Adam's form, steps made again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gbnn.training import lazy_kernels
from gbnn.training.schedules import Schedule

if TYPE_CHECKING:
    from gbnn.training.transform import Transform

__all__ = ["AdamTable", "LinearTable", "ReplayTable"]

Array = np.ndarray[Any, Any]

SPAN = 1024
"""Steps after which all edges are brought up to date: what a step has to do for the table stays small."""

SPAN_OF_REPLAY = 16
"""The same where steps are made again, each by some calls of NumPy for all edges that missed it."""

ORDER = 8
"""Terms of Adam's series; `lazy_kernels.adam_catch_up` knows it."""

BLOCK = 2**15
"""Edges whose steps are made again at a time (see `transform.BLOCK`)."""


class LinearTable:
    """Steps that, without a gradient, take an edge's value and slots through a linear map.

    The map of one step is found by making it: on the unit vectors, in float64. For every number of steps that
    an edge may have had, the product of the maps of the others is kept.

    Parameters
    ----------
    optimizer : Transform
    name : str
        The parameter.
    slots : iterable of str
        Names of its slots.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training import sgd
    >>> from gbnn.training.catch_up import LinearTable
    >>> table, w, slots = LinearTable(sgd(0.1, momentum=0.5), "w", ["momentum"]), np.ones(2), np.ones(2)
    >>> table.note(0), table.note(1)
    (None, None)
    >>> table.catch_up(w, {"momentum": slots}, np.array([0]), np.zeros(2, dtype=np.uint16), 2)
    >>> w, slots
    (array([0.925, 1.   ]), array([0.25, 1.  ]))
    """

    span = SPAN

    def __init__(self, optimizer: Transform, name: str, slots: Any) -> None:
        self._update, self._name, self._slots = optimizer.update, name, list(slots)
        self._units = np.eye(1 + len(self._slots))
        self._table = np.empty((self.span + 1, *self._units.shape))
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._count = 0
        self._table[0] = self._units

    def note(self, step: int) -> None:
        """Take in one more step."""
        value, *slots = self._units.copy()
        own = {self._name: dict(zip(self._slots, slots, strict=True))}
        update = self._update({self._name: np.zeros_like(value)}, own, {self._name: value}, step)[self._name]
        matrix = np.array([value + update, *slots])
        lazy_kernels.linear_note(matrix, self._table, self._count + 1)
        self._count += 1
        self._table[self._count] = self._units

    def catch_up(
        self, values: Array, slots: Mapping[str, Array], positions: Array | None, seen: Array, count: int
    ) -> None:
        """Give edges the steps they missed, in place."""
        arrays = (values, *(slots[name] for name in self._slots))
        lazy_kernels.begin(lazy_kernels.linear_catch_up, positions, seen, count, self._table, arrays)


class AdamTable:
    """Steps of Adam without a gradient; those of AdamW shrink the value, too.

    Let m and v be an edge's slots after it was last brought up to date, s = √v. At the k-th step it misses
    they are m·β₁ᵏ and v·β₂ᵏ, so it should have moved by -L·m·β₁ᵏ / (s·β₂^(k/2) + ε·r), with r the root of the
    bias correction of v at that step and L its learning rate times r over the bias correction of m. With
    ρ = β₁/√β₂ and q = r·β₂^(-k/2) that is -L·ρᵏ·m / (s + ε·q). As q hardly changes while ρᵏ vanishes, the sum
    over the missed steps is expanded around a q₀ among them: with d = s + ε·q₀ and z = -ε/d

        Σ L·ρᵏ·m / (s + ε·q)  =  m/d · Σ_j zʲ·M_j,      M_j = Σ L·ρᵏ·(q - q₀)ʲ.

    The M_j depend on when an edge was last up to date but not on the edge, and a step adds a term to each of
    the last few hundred (ρᵏ of an older one is beyond float64). What 8 terms leave out is at most
    z⁸·M₈ · (s + ε·q₀) / (s + ε·q₁), since q grows with k. Where that is more than the dtype's precision (tiny
    gradients in the first steps of training), the missed steps are made one by one.

    Parameters
    ----------
    rate : Schedule
    keep1, keep2, epsilon : float
        keep1 is less than the root of keep2.
    decay : float
        Of AdamW.
    prefix : str
        Of the names of the slots.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training.catch_up import AdamTable
    >>> from gbnn.training.schedules import constant
    >>> table = AdamTable(constant(0.1), 0.9, 0.999, 1e-8)
    >>> w, slots = np.ones(2), {"momentum": np.array([0.1, 0.0]), "square": np.array([0.25, 0.0])}
    >>> table.note(100)
    >>> table.catch_up(w, slots, np.array([0, 1]), np.zeros(2, dtype=np.uint16), 1)
    >>> w.round(4)
    array([0.9944, 1.    ])
    """

    span = SPAN

    def __init__(
        self,
        rate: Schedule,
        keep1: float,
        keep2: float,
        epsilon: float,
        decay: float = 0.0,
        prefix: str = "",
    ) -> None:
        self._rate, self._decay, self._epsilon = rate, decay, epsilon
        self._keep1, self._keep2 = keep1, keep2
        self._names = f"{prefix}momentum", f"{prefix}square"
        missed = np.arange(self.span + 1)
        ratio = keep1 / math.sqrt(keep2)
        self._power1, self._power2 = keep1**missed, keep2**missed
        self._ratio = ratio**missed
        self._window = min(self.span, 1 + int(np.count_nonzero(self._ratio > 1e-20)))
        with np.errstate(over="ignore"):
            self._growth = np.where(missed <= self._window, keep2 ** (-missed / 2), 0.0)
        self._middle = min(self._window, round(1 / (1 - ratio)))  # the mean of k, by ρᵏ
        self._moments = np.empty((self.span + 1, ORDER + 1))
        self._shares, self._centres, self._nearest, self._lengths, self._roots, self._steps = np.empty(
            (6, self.span + 1)
        )
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._count = 0
        self._moments[0], self._shares[0] = 0.0, 1.0

    def _root(self, step: int) -> float:
        return math.sqrt(1.0 - self._keep2 ** (step + 1))

    def note(self, step: int) -> None:
        """Take in one more step."""
        k, rate, root = self._count, self._rate(step), self._root(step)
        length, share = rate * root / (1.0 - self._keep1 ** (step + 1)), 1.0 - rate * self._decay
        self._centres[k] = self._root(step + self._middle - 1) * self._growth[self._middle]
        self._nearest[k] = root * self._growth[1]
        self._lengths[k], self._roots[k], self._steps[k] = length, root, share
        lazy_kernels.adam_note(
            self._moments, self._shares, self._centres, self._ratio, self._growth,
            length, root, share, k, self._window,
        )  # fmt: skip
        if share < 0.0:  # terms of both signs would hide what the series leaves out
            self._moments[: k + 1, -1] = np.inf
        self._count += 1
        self._moments[self._count], self._shares[self._count] = 0.0, 1.0

    def catch_up(
        self, values: Array, slots: Mapping[str, Array], positions: Array | None, seen: Array, count: int
    ) -> None:
        """Give edges the steps they missed, in place."""
        mean, square = (slots[name] for name in self._names)
        lazy_kernels.begin(
            lazy_kernels.adam_catch_up, positions, seen, count, values, mean, square,
            self._power1, self._power2, self._window,
            (self._keep1, self._keep2, self._epsilon, float(np.finfo(values.dtype).eps)),
            self._moments, self._shares, self._centres, self._nearest,
            self._lengths, self._roots, self._steps,
        )  # fmt: skip


class ReplayTable:
    """Steps of any rule that works value by value: they are made again, without a gradient.

    It is exact to the bit, and the work of the optimizer that is not lazy; but no step takes memory for all
    edges.

    Parameters
    ----------
    optimizer : Transform
    name : str
        The parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training import sgd
    >>> from gbnn.training.catch_up import ReplayTable
    >>> table, w = ReplayTable(sgd(0.1, weight_decay=0.5), "w"), np.ones(2)
    >>> table.note(0)
    >>> table.catch_up(w, {}, np.array([1]), np.zeros(2, dtype=np.uint16), 1)
    >>> w
    array([1.  , 0.95])
    """

    span = SPAN_OF_REPLAY

    def __init__(self, optimizer: Transform, name: str) -> None:
        self._update: Callable[..., Any] = optimizer.update
        self._name = name
        self._steps: list[int] = []

    def clear(self) -> None:
        """Forget all steps."""
        self._steps = []

    def note(self, step: int) -> None:
        """Take in one more step."""
        self._steps.append(step)

    def catch_up(
        self, values: Array, slots: Mapping[str, Array], positions: Array | None, seen: Array, count: int
    ) -> None:
        """Give edges the steps they missed, in place; all of them in blocks."""
        if positions is None:
            for start in range(0, values.size, BLOCK):
                block = np.arange(start, min(start + BLOCK, values.size))
                self.catch_up(values, slots, block, seen, count)
            return
        had = seen[positions]
        order = np.argsort(had, kind="stable")[: np.count_nonzero(had < count)]
        at, had, name = positions[order], had[order], self._name  # those that missed most come first
        if not at.size:
            return
        own = {key: slot[at] for key, slot in slots.items()}
        value, zero = values[at], np.zeros(at.size, dtype=values.dtype)
        for k in range(int(had[0]), count):
            n = int(np.searchsorted(had, k, side="right"))  # all that have had k steps at most
            some = {name: {key: slot[:n] for key, slot in own.items()}}
            value[:n] += self._update({name: zero[:n]}, some, {name: value[:n]}, self._steps[k])[name]
        values[at] = value
        for key, slot in own.items():
            slots[key][at] = slot
        seen[at] = count
