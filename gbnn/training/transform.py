"""`Transform`, what an optimizer is, the parts to chain, and the driver that every rule runs in.

Every slot has the shape of its parameter and starts at zero, the default fill of `Change.carry`: after a
rewiring, carrying each slot is all there is to do, and a new edge begins like one that never had a gradient.

All but `clip_by_norm` work value by value, by a *rule* that is given one block of everything at a time, so
that temporary arrays stay in cache. The training loop prefers the rule compiled into one pass in place, where
an optimizer has one (`InPlace`). Where a gradient is on touched edges only, it gives a transform just those
(`lazy`), and `Transform.idle` says what is owed to the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_bool, check_finite, check_float, check_int
from gbnn.semirings.kernels import start
from gbnn.training.idle import Idle, of_chain
from gbnn.training.schedules import Schedule, as_schedule, constant
from gbnn.training.step_kernels import NOWHERE, read_only
from gbnn.weights import real_dtype

__all__ = ["InPlace", "Transform", "add_decayed_weights", "chain", "clip_by_norm", "scale"]

Array = np.ndarray[Any, Any]
Slots = Mapping[str, Mapping[str, Array]]
Gradients = Mapping[str, Any]
Values = Mapping[str, Array]
Updates = dict[str, Array]
Choice = Callable[[str], bool] | None

BLOCK = 2**15
"""Values in a block: few enough for caches, enough to hide the cost of a NumPy call (measured: of blocks
from 2**11 to 2**16 the fastest within noise, and up to twice as fast as whole arrays of 10 million)."""


class InPlace(NamedTuple):
    """A transform as one compiled pass that changes values and slots where they lie.

    Attributes
    ----------
    names : tuple of str
        The slots.
    step : callable
        ``step(name, step, gradient, values, slots, positions)`` does to the values what adding the result of
        `Transform.update` does, to the bit. Arrays are flat, contiguous, of one dtype and right: nothing is
        checked. ``gradient[p]`` belongs to ``values[positions[p]]`` and the same place in each of the list
        `slots`; positions are int64, ascending, each once. None: the gradient is that of all values.
    """

    names: tuple[str, ...]
    step: Callable[[str, int, Array, Array, list[Array], Array | None], None]


@dataclass(frozen=True)
class Transform:
    """An optimizer, or a part of one: how slots begin, and how gradients become updates.

    Parameters
    ----------
    init : callable
        ``init(values) -> {slot: array}``: the slots of one parameter, float32 or float64 as it is, each of
        its shape and zero.
    update : callable
        ``update(gradients, slots, values, step) -> {parameter: array}``: what to add to each parameter, in
        its dtype. All four dicts have the same keys; `slots` maps each to its dict of slots; `step` counts
        from 0. The arrays of the slots are changed in place; gradients and values are not changed, and the
        result may be the gradients themselves. A lazy gradient is asked for its array (`numpy.asarray`).
        NaN and infinity pass through without a warning: to look for them is the caller's choice.
        Names and shapes that do not fit raise ArgumentError.
    idle : callable
        ``idle(name) -> Idle``: what a step does to a value of this parameter whose gradient is zero; None, as
        it is for a transform of your own that does not say, where a step has to be made on all values.
    in_place : InPlace, optional
        The same steps in one compiled pass: what `train` takes where there is one.
    lazy : bool, optional
        Whether `train` updates only the edges that a gradient touched, see `lazily`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training import sgd
    >>> optimizer = sgd(0.1, momentum=0.9)
    >>> values = {"w": np.array([1.0, 2.0])}
    >>> slots = optimizer.start(values)
    >>> optimizer.update({"w": np.array([1.0, -1.0])}, slots, values, step=0)
    {'w': array([-0.1,  0.1])}
    >>> slots
    {'w': {'momentum': array([ 1., -1.])}}
    """

    init: Callable[[Array], dict[str, Array]]
    update: Callable[[Gradients, Slots, Values, int], Updates]
    idle: Callable[[str], Idle | None] = lambda name: None
    lazy: bool | None = None
    in_place: InPlace | None = None

    def lazily(self, choice: bool | None) -> Transform:
        """Return the same optimizer, lazy or not; of a chain, the choice of the whole counts.

        Parameters
        ----------
        choice : bool or None
            Whether a step updates only the edges of a layer that the batch touched, where the layer's
            gradient tells which (sparse activations). Others are given what they missed when somebody next
            looks at them: values and slots are those of an optimizer that is not lazy, but for rounding.
            False: never. True: wherever the optimizer can. None, the default: where that is faster.

        Raises
        ------
        KindError
            If it is none of these.

        Examples
        --------
        >>> from gbnn.training import adam
        >>> adam(1e-3).lazily(False).lazy
        False
        """
        return replace(self, lazy=None if choice is None else check_bool("lazy", choice))

    def start(self, values: Values) -> dict[str, dict[str, Array]]:
        """Return the slots of all parameters: name -> slot -> zeros of the parameter's shape and dtype."""
        return {name: self.init(array) for name, array in values.items()}


# -- Parts to chain ------------------------------------------------------------------------------------------


def chain(*transforms: Transform) -> Transform:
    """Apply transforms one after the other: the updates of one are the gradients of the next.

    The slots of the i-th (from 0) are named ``"i.slot"``. No transforms at all change nothing.

    Raises
    ------
    KindError
        If one is not a Transform.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training import adam, chain, clip_by_norm
    >>> optimizer = chain(clip_by_norm(1.0), adam(1e-3))
    >>> sorted(optimizer.init(np.zeros(3)))
    ['1.momentum', '1.square']
    """
    for i, part in enumerate(transforms):
        if not isinstance(part, Transform):
            raise KindError(f"transforms[{i}]", "a Transform", type(part).__name__)

    def init(values: Array) -> dict[str, Array]:
        return {
            f"{i}.{k}": slot for i, part in enumerate(transforms) for k, slot in part.init(values).items()
        }

    def update(gradients: Gradients, slots: Slots, values: Values, step: int) -> Updates:
        updates = {name: np.asarray(gradient) for name, gradient in gradients.items()}
        for i, part in enumerate(transforms):
            own = {
                name: {k.removeprefix(f"{i}."): slot for k, slot in all_.items() if k.startswith(f"{i}.")}
                for name, all_ in slots.items()
            }
            updates = part.update(updates, own, values, step)
        return updates

    return Transform(init, update, lambda name: of_chain([part.idle(name) for part in transforms]))


def scale(by: float | Schedule) -> Transform:
    """Multiply by a number or a schedule; ``scale(-0.1)`` is plain gradient descent.

    Raises
    ------
    ArgumentError, KindError
        If `by` is not a finite number.

    Examples
    --------
    >>> from gbnn.training import adam, chain, scale
    >>> optimizer = chain(scale(1 / 1024), adam(1e-3))  # the loss was scaled by 1024
    """

    def rule(at: At, g: Array, w: Array, out: Array) -> None:
        np.multiply(g, at.rate, out=out)

    idle = Idle(still=True, quiet=True, linear=True, linear_in_gradient=True)
    return elementwise(rule, (), as_schedule("by", by), idle=lambda decays: idle)


def add_decayed_weights(rate: float, decay: Choice = None) -> Transform:
    """Add the share `rate` of the values to the gradients: an L2 penalty. It goes before the optimizer.

    Parameters
    ----------
    rate : float
        At least 0.
    decay : callable, optional
        ``decay(name) -> bool`` chooses the parameters that decay; all, if None.

    Raises
    ------
    ArgumentError, KindError
        If `rate` is not a number from 0.

    Examples
    --------
    >>> from gbnn.training import add_decayed_weights, chain, clip_by_norm, sgd
    >>> optimizer = chain(clip_by_norm(1.0), add_decayed_weights(1e-4), sgd(0.1))
    """
    share = check_float("rate", rate, 0.0)

    def rule(at: At, g: Array, w: Array, out: Array) -> None:
        np.multiply(w, at.decay, out=out)
        out += g

    def idle(decays: bool) -> Idle:
        return Idle(still=not decays, quiet=not decays, linear=True, linear_in_gradient=True)

    return elementwise(rule, (), constant(0.0), share, decay, idle)


def clip_by_norm(max_norm: float) -> Transform:
    """Shorten the gradients, all parameters as one vector, to `max_norm`: torch's ``clip_grad_norm_``.

    The norm is summed in float64 whatever the dtype. It has to be known before anything is updated, so
    this part always takes a pass of its own.

    Parameters
    ----------
    max_norm : float
        The largest Euclidean norm that passes; positive.

    Raises
    ------
    ArgumentError, KindError
        If `max_norm` is not a positive number.
    NonFiniteError
        From `update`, if a gradient holds NaN or infinity: no length would be right.

    References
    ----------
    R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural networks", 2013,
    arXiv:1211.5063.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training import clip_by_norm
    >>> values = {"a": np.zeros(1), "b": np.zeros(1)}
    >>> clip = clip_by_norm(1.0)
    >>> updates = clip.update({"a": np.array([3.0]), "b": np.array([4.0])}, clip.start(values), values, 0)
    >>> updates["a"].round(3), updates["b"].round(3)
    (array([0.6]), array([0.8]))
    """
    limit = positive("max_norm", max_norm)

    def update(gradients: Gradients, slots: Slots, values: Values, step: int) -> Updates:
        arrays = {name: gradient for name, gradient, _, _ in _matched(gradients, slots, values)}
        norm = _norm(arrays)
        if not math.isfinite(norm):
            for name, array in arrays.items():
                check_finite(name, array)
        factor = limit / (norm + 1e-6)  # torch's guard, kept so that results agree
        if factor >= 1.0:
            return arrays
        return {n: np.multiply(array, factor, out=np.empty_like(values[n])) for n, array in arrays.items()}

    idle = Idle(still=True, quiet=True, linear=True, by_value=False)
    return Transform(lambda values: {}, update, lambda name: idle)


def _norm(arrays: Values) -> float:
    """Return the Euclidean norm of all arrays as one vector, summed in float64 without a large copy."""
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for array in arrays.values():
            for block in blocks(array.shape):
                flat = np.asarray(array[block], dtype=np.float64).ravel()
                total += float(flat @ flat)
    return math.sqrt(total)


# -- What all rules share ------------------------------------------------------------------------------------


class At(NamedTuple):
    """The numbers of a rule at one step, for one parameter: Python floats, which leave float32 as it is."""

    step: int
    rate: float
    decay: float


def elementwise(
    rule: Callable[..., None],
    names: tuple[str, ...],
    rate: Schedule,
    weight_decay: float = 0.0,
    decay: Choice = None,
    idle: Callable[[bool], Idle] = lambda decays: Idle(),
    compiled: tuple[Any, Callable[[At], tuple[float, ...]]] | None = None,
) -> Transform:
    """Make a transform of slot names and ``rule(at, gradient, values, out, *slots)``.

    The rule gets one block of each array, writes the update to `out` and changes the slots in place.
    ``idle(decays)`` says what it does where the gradient is zero, for a parameter that decays or not.
    `compiled` is the kernel of `step_kernels` that does the same, and a function that gives its numbers.
    """
    share = check_float("weight_decay", weight_decay, 0.0)

    def init(values: Array) -> dict[str, Array]:
        real_dtype("values", values.dtype)
        return {name: np.zeros_like(values) for name in names}

    def share_of(name: str) -> float:
        return share if decay is None or decay(name) else 0.0

    def update(gradients: Gradients, slots: Slots, values: Values, step: int) -> Updates:
        step, updates = check_int("step", step, 0), {}
        now = rate(step)
        with np.errstate(over="ignore", invalid="ignore"):
            for name, gradient, array, own in _matched(gradients, slots, values, names):
                at = At(step, now, share_of(name))
                updates[name] = np.empty_like(array)
                arrays = (gradient, array, updates[name], *own)
                for block in blocks(array.shape):
                    rule(at, *(a[block] for a in arrays))
        return updates

    def step_in_place(
        name: str, step: int, gradient: Array, values: Array, slots: list[Array], positions: Array | None
    ) -> None:
        kernel, numbers = compiled  # type: ignore[misc] # only called where there is one
        with np.errstate(over="ignore"):
            given = tuple(values.dtype.type(n) for n in numbers(At(step, rate(step), share_of(name))))
        at = NOWHERE if positions is None else read_only(positions)
        start(kernel, gradient.size, at, read_only(gradient), values, *slots, given)

    in_place = None if compiled is None else InPlace(names, step_in_place)
    return Transform(init, update, lambda name: idle(share_of(name) > 0.0), in_place=in_place)


def blocks(shape: tuple[int, ...]) -> Iterator[slice | EllipsisType]:
    """Yield indices of blocks of about BLOCK values, cut along the first dimension."""
    size = math.prod(shape)
    if size <= BLOCK:
        yield ...
    else:
        rows = max(1, BLOCK * shape[0] // size)
        yield from (slice(start, start + rows) for start in range(0, shape[0], rows))


def _matched(
    gradients: Gradients, slots: Slots, values: Values, names: tuple[str, ...] = ()
) -> list[tuple[str, Array, Array, list[Array]]]:
    """Return name, gradient (in the dtype of the values), values and slots of each parameter, or raise."""
    for where, other in (("gradients", gradients.keys()), ("slots", slots.keys())):
        if other != values.keys():
            raise ArgumentError(where, f"the parameters {sorted(values)}", sorted(other))
    rows = []
    for name, array in values.items():
        if set(slots[name]) != set(names):
            raise ArgumentError(f"slots of {name}", f"{sorted(names)}", sorted(slots[name]))
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
            gradient = np.asarray(gradients[name], dtype=array.dtype)
        own = [slots[name][k] for k in names]
        # A slot left behind by a rewiring, or a gradient that would broadcast, must not pass.
        for what, came in zip(("gradient", *names), (gradient, *own), strict=True):
            if came.shape != array.shape:
                raise ArgumentError(f"{what} of {name}", f"shape {array.shape}", came.shape)
        rows.append((name, gradient, array, own))
    return rows


def positive(where: str, value: float) -> float:
    return check_float(where, value, 0.0, open_low=True)
