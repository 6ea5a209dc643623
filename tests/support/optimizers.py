"""The table of optimizers that all their tests go through, each with its twin in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gbnn.training.optimizers import adagrad, adam, adamw, rmsprop, sgd
from gbnn.training.schedules import Schedule
from gbnn.training.transform import Transform, add_decayed_weights, chain, clip_by_norm, scale


def no_bias(name: str) -> bool:
    return not name.endswith("bias")


@dataclass(frozen=True)
class Case:
    """An optimizer and its twin: `make(rate)`; `twin(torch.optim, parameters, rate)`."""

    make: Callable[[float | Schedule], Transform]
    twin: Callable[[Any, Any, float], Any]
    rate: float  # at which it minimises the quadratic below
    slots: tuple[str, ...]
    clip: float | None = None  # torch clips outside the optimizer
    decays: Callable[[str], bool] = lambda name: True


CASES = {
    "sgd": Case(sgd, lambda o, p, lr: o.SGD(p, lr), 0.3, ()),
    "sgd decay": Case(
        lambda lr: sgd(lr, weight_decay=0.01), lambda o, p, lr: o.SGD(p, lr, weight_decay=0.01), 0.3, ()
    ),
    "sgd momentum": Case(
        lambda lr: sgd(lr, momentum=0.9, weight_decay=0.01),
        lambda o, p, lr: o.SGD(p, lr, momentum=0.9, weight_decay=0.01),
        0.1,
        ("momentum",),
    ),
    "sgd nesterov": Case(
        lambda lr: sgd(lr, momentum=0.8, nesterov=True, weight_decay=0.01, decay=no_bias),
        lambda o, p, lr: o.SGD(p, lr, momentum=0.8, nesterov=True, weight_decay=0.01),
        0.1,
        ("momentum",),
        decays=no_bias,
    ),
    "adam": Case(adam, lambda o, p, lr: o.Adam(p, lr), 0.05, ("momentum", "square")),
    "adam decay": Case(
        lambda lr: adam(lr, 0.8, 0.95, 1e-3, weight_decay=0.01),
        lambda o, p, lr: o.Adam(p, lr, (0.8, 0.95), 1e-3, weight_decay=0.01),
        0.05,
        ("momentum", "square"),
    ),
    "adamw": Case(adamw, lambda o, p, lr: o.AdamW(p, lr), 0.05, ("momentum", "square")),
    "adamw no bias": Case(
        lambda lr: adamw(lr, weight_decay=0.02, decay=no_bias),
        lambda o, p, lr: o.AdamW(p, lr, weight_decay=0.02),
        0.05,
        ("momentum", "square"),
        decays=no_bias,
    ),
    "rmsprop": Case(rmsprop, lambda o, p, lr: o.RMSprop(p, lr), 0.03, ("square",)),
    "rmsprop momentum": Case(
        lambda lr: rmsprop(lr, alpha=0.95, epsilon=1e-6, momentum=0.7, weight_decay=0.01),
        lambda o, p, lr: o.RMSprop(p, lr, alpha=0.95, eps=1e-6, momentum=0.7, weight_decay=0.01),
        0.01,
        ("momentum", "square"),
    ),
    "adagrad": Case(adagrad, lambda o, p, lr: o.Adagrad(p, lr), 0.5, ("square",)),
    "adagrad decay": Case(
        lambda lr: adagrad(lr, weight_decay=0.01),
        lambda o, p, lr: o.Adagrad(p, lr, weight_decay=0.01),
        0.5,
        ("square",),
    ),
    "clip_by_norm, chain": Case(
        lambda lr: chain(clip_by_norm(2.0), sgd(lr, momentum=0.5), scale(0.5)),
        lambda o, p, lr: o.SGD(p, 0.5 * lr, momentum=0.5),
        0.5,
        ("1.momentum",),
        clip=2.0,
    ),
    "add_decayed_weights, scale, chain": Case(
        lambda lr: chain(add_decayed_weights(0.01, decay=no_bias), adam(lr), scale(0.5)),
        lambda o, p, lr: o.Adam(p, 0.5 * lr, weight_decay=0.01),
        0.1,
        ("1.momentum", "1.square"),
        decays=no_bias,
    ),
}
