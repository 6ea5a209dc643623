"""Optimizers: transforms of gradients into updates, whose state is per value and so follows its edge.

Each takes the same steps as its `torch.optim` namesake, by a rule that `transform.elementwise` runs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, check_float
from gbnn.training import step_kernels
from gbnn.training.catch_up import AdamTable
from gbnn.training.idle import Idle, Table
from gbnn.training.schedules import Schedule, as_schedule
from gbnn.training.transform import At, Choice, Transform, elementwise, positive

__all__ = ["adagrad", "adam", "adamw", "rmsprop", "sgd"]

Array = np.ndarray[Any, Any]


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

    Notes
    -----
    Lazily (`Transform.lazily`), plain steps owe an untouched edge nothing. With momentum or decay its value
    and slot go by a linear recurrence, whose matrix over the missed steps, each with its own learning rate,
    is kept for every number of them.

    Examples
    --------
    >>> from gbnn.training.optimizers import sgd
    >>> from gbnn.training.schedules import cosine
    >>> optimizer = sgd(cosine(0.1, steps=1000), momentum=0.9, nesterov=True)
    """
    keep = _share("momentum", momentum)
    if nesterov and not keep:
        raise ArgumentError("nesterov", "False where momentum is 0", nesterov)

    def rule(at: At, g: Array, w: Array, out: Array, velocity: Array | None = None) -> None:
        if at.decay:
            g = g + at.decay * w
        if velocity is not None:
            velocity *= keep
            velocity += g
            g = g + keep * velocity if nesterov else velocity
        np.multiply(g, -at.rate, out=out)

    def idle(decays: bool) -> Idle:
        still = not keep and not decays
        return Idle(still=still, quiet=still, linear=True, linear_in_gradient=True)

    def numbers(at: At) -> tuple[float, ...]:
        return (at.rate, keep, float(nesterov), at.decay) if keep else (at.rate, at.decay)

    names, kernel = (("momentum",), step_kernels.sgd) if keep else ((), step_kernels.descent)
    return elementwise(rule, names, _learning(learning_rate), weight_decay, decay, idle, (kernel, numbers))


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

    Notes
    -----
    Lazily (`Transform.lazily`), without decay: over k steps without gradient the mean m shrinks by beta1**k
    and the root s of the mean square by beta2**(k/2), so that the sum of the missed updates is m times a
    function of s, which a series in epsilon / (s + epsilon) gives to the precision of the dtype
    (`catch_up.AdamTable`); where it would not, the edge's missed steps are made again. With decay they
    always are.

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

    The arguments, slots and errors are those of `adam`, and so is the way to be lazy (here with decay, too);
    but the learning rate times `weight_decay` is the share by which the values shrink at each step, beside
    what the gradient does.

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
    keep1, keep2, least = _share("beta1", beta1), _share("beta2", beta2), positive("epsilon", epsilon)

    def corrected(at: At) -> tuple[float, float]:
        # The corrections of bias are numbers, not passes over the values: m / c1 / (sqrt(v / c2) + e)
        # is m / (sqrt(v) + e * sqrt(c2)) * (sqrt(c2) / c1).
        root = math.sqrt(1.0 - keep2 ** (at.step + 1))
        return least * root, at.rate * root / (1.0 - keep1 ** (at.step + 1))

    def rule(at: At, g: Array, w: Array, out: Array, mean: Array, square: Array) -> None:
        added, length = corrected(at)
        if at.decay and not decoupled:
            g = g + at.decay * w
        mean *= keep1
        mean += (1.0 - keep1) * g
        square *= keep2
        square += (1.0 - keep2) * g * g
        np.sqrt(square, out=out)
        out += added
        np.divide(mean, out, out=out)
        out *= -length
        if at.decay and decoupled:
            out -= (at.rate * at.decay) * w

    def numbers(at: At) -> tuple[float, ...]:
        joined, apart = (0.0, at.rate * at.decay) if decoupled else (at.decay, 0.0)
        return keep1, 1.0 - keep1, keep2, 1.0 - keep2, *corrected(at), joined, apart

    now = _learning(rate)

    def idle(decays: bool) -> Idle:
        share = weight_decay if decays else 0.0
        # Not where what is left of the mean shrinks less fast than the root it is divided by.
        if (share and not decoupled) or keep1 >= math.sqrt(keep2):
            return Idle()

        def closed(prefix: str) -> Table:
            return AdamTable(now, keep1, keep2, least, share, prefix)

        return Idle(closed=closed)

    compiled = step_kernels.adam, numbers
    return elementwise(rule, ("momentum", "square"), now, weight_decay, decay, idle, compiled)


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

    Notes
    -----
    Lazily (`Transform.lazily`), without decay: as `sgd` with momentum, for a mean square without gradient
    just shrinks. With decay an edge's missed steps are made again.

    Examples
    --------
    >>> from gbnn.training.optimizers import rmsprop
    >>> optimizer = rmsprop(1e-3, momentum=0.9)
    """
    keep, least, inertia = _share("alpha", alpha), positive("epsilon", epsilon), _share("momentum", momentum)

    def rule(at: At, g: Array, w: Array, out: Array, square: Array, velocity: Array | None = None) -> None:
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

    def idle(decays: bool) -> Idle:
        return Idle(quiet=not inertia and not decays, linear=not decays)

    def numbers(at: At) -> tuple[float, ...]:
        own = (inertia,) if inertia else ()
        return at.rate, keep, 1.0 - keep, least, *own, at.decay

    names = ("square", "momentum") if inertia else ("square",)
    kernel = step_kernels.rmsprop_momentum if inertia else step_kernels.rmsprop
    return elementwise(rule, names, _learning(learning_rate), weight_decay, decay, idle, (kernel, numbers))


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

    Notes
    -----
    Lazily (`Transform.lazily`), without decay, nothing is owed to an edge that is not touched. With decay its
    missed steps are made again.

    Examples
    --------
    >>> from gbnn.training.optimizers import adagrad
    >>> optimizer = adagrad(0.1)
    """
    least = positive("epsilon", epsilon)

    def rule(at: At, g: Array, w: Array, out: Array, square: Array) -> None:
        if at.decay:
            g = g + at.decay * w
        square += g * g
        np.sqrt(square, out=out)
        out += least
        np.divide(g, out, out=out)
        out *= -at.rate

    def idle(decays: bool) -> Idle:
        return Idle(still=not decays, quiet=not decays, linear=not decays)

    compiled = step_kernels.adagrad, lambda at: (at.rate, least, at.decay)
    return elementwise(rule, ("square",), _learning(learning_rate), weight_decay, decay, idle, compiled)


def _learning(rate: float | Schedule) -> Schedule:
    return as_schedule("learning_rate", rate, 0.0)


def _share(where: str, value: float) -> float:
    """Return a float in [0, 1): what a running mean keeps."""
    number = check_float(where, value)
    if not 0.0 <= number < 1.0:
        raise ArgumentError(where, "a number in [0, 1)", number)
    return number
