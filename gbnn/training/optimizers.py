"""Optimizers: transforms of gradients into updates, whose state is per value and so follows its edge.

Each takes the same steps as its `torch.optim` namesake. Every slot has the shape of its parameter and starts
at zero, the default fill of `Change.carry`: after a rewiring, carrying each slot is all there is to do, and a
new edge begins like one that never had a gradient.

All but `clip_by_norm` work value by value, by a *rule* that is given one block of everything at a time, so
that temporary arrays stay in cache. There is the room for what comes later: a rule compiled into one pass, a
lazy gradient made block by block, a gradient on touched edges only. Each is another caller of a rule, beside
`_elementwise`, and none changes what a `Transform` is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_finite, check_float, check_int
from gbnn.training.schedules import Schedule, as_schedule, constant
from gbnn.weights import real_dtype

__all__ = [
    "Transform",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "chain",
    "clip_by_norm",
    "rmsprop",
    "scale",
    "sgd",
]

Array = np.ndarray[Any, Any]
Slots = Mapping[str, Mapping[str, Array]]
Gradients = Mapping[str, Any]
Values = Mapping[str, Array]
Updates = dict[str, Array]
Choice = Callable[[str], bool] | None

BLOCK = 2**15
"""Values in a block: few enough for caches, enough to hide the cost of a NumPy call (measured: of blocks
from 2**11 to 2**16 the fastest within noise, and up to twice as fast as whole arrays of 10 million)."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training.optimizers import sgd
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

    def start(self, values: Values) -> dict[str, dict[str, Array]]:
        """Return the slots of all parameters: name -> slot -> zeros of the parameter's shape and dtype."""
        return {name: self.init(array) for name, array in values.items()}


# -- Optimizers ----------------------------------------------------------------------------------------------


def sgd(
    learning_rate: float | Schedule,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    decay: Choice = None,
) -> Transform:
    """Stochastic gradient descent, with momentum if wanted: ``torch.optim.SGD``.

    Parameters
    ----------
    learning_rate : float or Schedule
        At least 0.
    momentum : float
        In [0, 1); 0 keeps no slot, otherwise there is one, "momentum".
    nesterov : bool
        Look ahead by one step of momentum.
    weight_decay : float
        This share of the values is added to the gradient.
    decay : callable, optional
        ``decay(name) -> bool`` chooses the parameters that decay; all, if None.

    Raises
    ------
    ArgumentError, KindError
        On arguments out of range, and on `nesterov` without momentum.

    References
    ----------
    I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013.

    Examples
    --------
    >>> from gbnn.training.optimizers import sgd
    >>> from gbnn.training.schedules import cosine
    >>> optimizer = sgd(cosine(0.1, steps=1000), momentum=0.9, nesterov=True)
    """
    keep = _share("momentum", momentum)
    if nesterov and not keep:
        raise ArgumentError("nesterov", "False where momentum is 0", nesterov)

    def rule(at: _At, g: Array, w: Array, out: Array, velocity: Array | None = None) -> None:
        if at.decay:
            g = g + at.decay * w
        if velocity is not None:
            velocity *= keep
            velocity += g
            g = g + keep * velocity if nesterov else velocity
        np.multiply(g, -at.rate, out=out)

    return _elementwise(rule, ("momentum",) if keep else (), _learning(learning_rate), weight_decay, decay)


def adam(
    learning_rate: float | Schedule = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    decay: Choice = None,
) -> Transform:
    """Adam, with weight decay added to the gradient: ``torch.optim.Adam``.

    Slots: "momentum" and "square", the running means of the gradient and its square. An edge grown late
    has the bias correction of its parameter, not one of its own, so its first steps are longer than those
    at the start of training: up to 6.6 times, for the default betas and a steady gradient.

    Parameters
    ----------
    learning_rate : float or Schedule
        At least 0.
    beta1, beta2 : float
        What the running means keep at each step, in [0, 1).
    epsilon : float
        Added to the root of the mean square; positive.
    weight_decay : float
        This share of the values is added to the gradient.
    decay : callable, optional
        ``decay(name) -> bool`` chooses the parameters that decay; all, if None.

    Raises
    ------
    ArgumentError, KindError
        On arguments out of range.

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015, arXiv:1412.6980.

    Examples
    --------
    >>> from gbnn.training.optimizers import adam
    >>> optimizer = adam(1e-3, weight_decay=1e-4, decay=lambda name: not name.endswith("bias"))
    """
    return _adam(learning_rate, beta1, beta2, epsilon, weight_decay, decay, decoupled=False)


def adamw(
    learning_rate: float | Schedule = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 1e-2,
    decay: Choice = None,
) -> Transform:
    """Adam with decoupled weight decay: ``torch.optim.AdamW``.

    The arguments, slots and errors are those of `adam`; but the learning rate times `weight_decay` is the
    share by which the values shrink at each step, beside what the gradient does.

    References
    ----------
    I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", 2019, arXiv:1711.05101.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training.optimizers import adamw
    >>> optimizer, values = adamw(0.1, weight_decay=0.5), {"w": np.array([2.0])}
    >>> optimizer.update({"w": np.array([0.0])}, optimizer.start(values), values, step=0)
    {'w': array([-0.1])}
    """
    return _adam(learning_rate, beta1, beta2, epsilon, weight_decay, decay, decoupled=True)


def _adam(
    rate: float | Schedule,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    decay: Choice,
    *,
    decoupled: bool,
) -> Transform:
    keep1, keep2, least = _share("beta1", beta1), _share("beta2", beta2), _positive("epsilon", epsilon)

    def rule(at: _At, g: Array, w: Array, out: Array, mean: Array, square: Array) -> None:
        # The corrections of bias are numbers, not passes over the values: m / c1 / (sqrt(v / c2) + e)
        # is m / (sqrt(v) + e * sqrt(c2)) * (sqrt(c2) / c1).
        root = math.sqrt(1.0 - keep2 ** (at.step + 1))
        length = at.rate * root / (1.0 - keep1 ** (at.step + 1))
        if at.decay and not decoupled:
            g = g + at.decay * w
        mean *= keep1
        mean += (1.0 - keep1) * g
        square *= keep2
        square += (1.0 - keep2) * g * g
        np.sqrt(square, out=out)
        out += least * root
        np.divide(mean, out, out=out)
        out *= -length
        if at.decay and decoupled:
            out -= (at.rate * at.decay) * w

    return _elementwise(rule, ("momentum", "square"), _learning(rate), weight_decay, decay)


def rmsprop(
    learning_rate: float | Schedule = 1e-2,
    alpha: float = 0.99,
    epsilon: float = 1e-8,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    decay: Choice = None,
) -> Transform:
    """RMSprop: the gradient over the root of its running mean square: ``torch.optim.RMSprop``.

    Parameters
    ----------
    learning_rate : float or Schedule
        At least 0.
    alpha : float
        What the mean square, slot "square", keeps at each step, in [0, 1).
    epsilon : float
        Added to the root; positive.
    momentum : float
        In [0, 1); above 0 there is a slot "momentum", of the divided gradients.
    weight_decay, decay
        As for `adam`.

    Raises
    ------
    ArgumentError, KindError
        On arguments out of range.

    References
    ----------
    T. Tieleman, G. Hinton, "Lecture 6.5: rmsprop", Neural Networks for Machine Learning, 2012.

    Examples
    --------
    >>> from gbnn.training.optimizers import rmsprop
    >>> optimizer = rmsprop(1e-3, momentum=0.9)
    """
    keep, least, inertia = _share("alpha", alpha), _positive("epsilon", epsilon), _share("momentum", momentum)

    def rule(at: _At, g: Array, w: Array, out: Array, square: Array, velocity: Array | None = None) -> None:
        if at.decay:
            g = g + at.decay * w
        square *= keep
        square += (1.0 - keep) * g * g
        np.sqrt(square, out=out)
        out += least
        np.divide(g, out, out=out)
        if velocity is not None:
            velocity *= inertia
            velocity += out
        np.multiply(out if velocity is None else velocity, -at.rate, out=out)

    names = ("square", "momentum") if inertia else ("square",)
    return _elementwise(rule, names, _learning(learning_rate), weight_decay, decay)


def adagrad(
    learning_rate: float | Schedule = 1e-2,
    epsilon: float = 1e-10,
    weight_decay: float = 0.0,
    decay: Choice = None,
) -> Transform:
    """Adagrad: the gradient over the root of the sum of all its squares: ``torch.optim.Adagrad``.

    Parameters
    ----------
    learning_rate : float or Schedule
        At least 0.
    epsilon : float
        Added to the root of the sum, slot "square"; positive.
    weight_decay, decay
        As for `adam`.

    Raises
    ------
    ArgumentError, KindError
        On arguments out of range.

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", JMLR 12, 2011.

    Examples
    --------
    >>> from gbnn.training.optimizers import adagrad
    >>> optimizer = adagrad(0.1)
    """
    least = _positive("epsilon", epsilon)

    def rule(at: _At, g: Array, w: Array, out: Array, square: Array) -> None:
        if at.decay:
            g = g + at.decay * w
        square += g * g
        np.sqrt(square, out=out)
        out += least
        np.divide(g, out, out=out)
        out *= -at.rate

    return _elementwise(rule, ("square",), _learning(learning_rate), weight_decay, decay)


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
    >>> from gbnn.training.optimizers import adam, chain, clip_by_norm
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

    return Transform(init, update)


def scale(by: float | Schedule) -> Transform:
    """Multiply by a number or a schedule; ``scale(-0.1)`` is plain gradient descent.

    Raises
    ------
    ArgumentError, KindError
        If `by` is not a finite number.

    Examples
    --------
    >>> from gbnn.training.optimizers import adam, chain, scale
    >>> optimizer = chain(scale(1 / 1024), adam(1e-3))  # the loss was scaled by 1024
    """

    def rule(at: _At, g: Array, w: Array, out: Array) -> None:
        np.multiply(g, at.rate, out=out)

    return _elementwise(rule, (), as_schedule("by", by))


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
    >>> from gbnn.training.optimizers import add_decayed_weights, chain, clip_by_norm, sgd
    >>> optimizer = chain(clip_by_norm(1.0), add_decayed_weights(1e-4), sgd(0.1))
    """
    share = check_float("rate", rate, 0.0)

    def rule(at: _At, g: Array, w: Array, out: Array) -> None:
        np.multiply(w, at.decay, out=out)
        out += g

    return _elementwise(rule, (), constant(0.0), share, decay)


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
    >>> from gbnn.training.optimizers import clip_by_norm
    >>> values = {"a": np.zeros(1), "b": np.zeros(1)}
    >>> clip = clip_by_norm(1.0)
    >>> updates = clip.update({"a": np.array([3.0]), "b": np.array([4.0])}, clip.start(values), values, 0)
    >>> updates["a"].round(3), updates["b"].round(3)
    (array([0.6]), array([0.8]))
    """
    limit = _positive("max_norm", max_norm)

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

    return Transform(lambda values: {}, update)


def _norm(arrays: Values) -> float:
    """Return the Euclidean norm of all arrays as one vector, summed in float64 without a large copy."""
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for array in arrays.values():
            for block in _blocks(array.shape):
                flat = np.asarray(array[block], dtype=np.float64).ravel()
                total += float(flat @ flat)
    return math.sqrt(total)


# -- What they share -----------------------------------------------------------------------------------------


class _At(NamedTuple):
    """The numbers of a rule at one step, for one parameter: Python floats, which leave float32 as it is."""

    step: int
    rate: float
    decay: float


def _elementwise(
    rule: Callable[..., None],
    names: tuple[str, ...],
    rate: Schedule,
    weight_decay: float = 0.0,
    decay: Choice = None,
) -> Transform:
    """Make a transform of slot names and ``rule(at, gradient, values, out, *slots)``.

    The rule gets one block of each array, writes the update to `out` and changes the slots in place.
    """
    share = check_float("weight_decay", weight_decay, 0.0)

    def init(values: Array) -> dict[str, Array]:
        real_dtype("values", values.dtype)
        return {name: np.zeros_like(values) for name in names}

    def update(gradients: Gradients, slots: Slots, values: Values, step: int) -> Updates:
        step, updates = check_int("step", step, 0), {}
        now = rate(step)
        with np.errstate(over="ignore", invalid="ignore"):
            for name, gradient, array, own in _matched(gradients, slots, values, names):
                at = _At(step, now, share if decay is None or decay(name) else 0.0)
                updates[name] = np.empty_like(array)
                arrays = (gradient, array, updates[name], *own)
                for block in _blocks(array.shape):
                    rule(at, *(a[block] for a in arrays))
        return updates

    return Transform(init, update)


def _blocks(shape: tuple[int, ...]) -> Iterator[slice | EllipsisType]:
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


def _learning(rate: float | Schedule) -> Schedule:
    return as_schedule("learning_rate", rate, 0.0)


def _positive(where: str, value: float) -> float:
    return check_float(where, value, 0.0, open_low=True)


def _share(where: str, value: float) -> float:
    """Return a float in [0, 1): what a running mean keeps."""
    number = check_float(where, value)
    if not 0.0 <= number < 1.0:
        raise ArgumentError(where, "a number in [0, 1)", number)
    return number
