"""Activations by name.

A new one is a subclass of `Activation` with two methods, `value` and `derivative`, in `rectifiers.py`,
`smooth.py` or a file of its own, and a line in `ACTIVATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers.kwinners import KWinners
from gbnn.layers.layer import Layer
from gbnn.layers.pointwise import Activation
from gbnn.layers.rectifiers import Identity, LeakyRelu, Relu
from gbnn.layers.smooth import Gelu, Sigmoid, Silu, Softplus, Tanh
from gbnn.layers.threshold import Threshold

__all__ = [
    "ACTIVATIONS",
    "NUMBERED",
    "Activation",
    "Gelu",
    "Identity",
    "LeakyRelu",
    "Relu",
    "Sigmoid",
    "Silu",
    "Softplus",
    "Tanh",
    "activation",
]


ACTIVATIONS: dict[str, Callable[[], Activation]] = {
    "gelu": Gelu,
    "identity": Identity,
    "leaky_relu": LeakyRelu,
    "relu": Relu,
    "sigmoid": Sigmoid,
    "silu": Silu,
    "softplus": Softplus,
    "tanh": Tanh,
}
"""Name -> the class that makes the activation of that name, with its defaults."""


NUMBERED: dict[str, tuple[Callable[[Any], Layer], type]] = {
    "kwinners": (KWinners, int),
    "leaky_relu": (LeakyRelu, float),
    "threshold": (Threshold, float),
}
"""Name -> what makes the activation called ``name:number``, and the kind of number."""


def activation(name: str) -> Layer:
    """Make an activation from its name.

    Parameters
    ----------
    name : str
        One of `ACTIVATIONS`, or of `NUMBERED` with a number: ``"kwinners:64"``, ``"leaky_relu:0.2"``.

    Returns
    -------
    Layer

    Raises
    ------
    ArgumentError
        If there is none of that name, or not of that number; the message lists the names.
    KindError
        If `name` is not a string.

    Examples
    --------
    >>> from gbnn.layers.activations import activation
    >>> activation("leaky_relu")
    LeakyRelu(slope=0.01)
    >>> activation("kwinners:64").k
    64
    """
    if not isinstance(name, str):
        raise KindError("activation", "a name", f"{name!r} of type {type(name).__name__}")
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]()
    kind, _, number = name.partition(":")
    if kind not in NUMBERED:
        names = [*ACTIVATIONS, *(f"{numbered}:NUMBER" for numbered in NUMBERED)]
        raise ArgumentError("activation", f"one of {', '.join(names)}", repr(name))
    make, kind_of = NUMBERED[kind]
    try:
        return make(kind_of(number))
    except GbnnError as error:
        raise ArgumentError("activation", f"{kind}:NUMBER with {error.expected}", repr(name)) from None
    except ValueError:
        wanted = "an integer" if kind_of is int else "a number"
        raise ArgumentError("activation", f"{kind}:NUMBER with {wanted}", repr(name)) from None
