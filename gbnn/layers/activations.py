"""Activations by name.

A new one is a subclass of `Activation` with two methods, `value` and `derivative`, in `rectifiers.py`,
`smooth.py` or a file of its own, and a line in `ACTIVATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable

from gbnn.errors import ArgumentError, KindError
from gbnn.layers.pointwise import Activation
from gbnn.layers.rectifiers import Identity, LeakyRelu, Relu
from gbnn.layers.smooth import Gelu, Sigmoid, Silu, Softplus, Tanh

__all__ = [
    "ACTIVATIONS",
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


def activation(name: str) -> Activation:
    """Make an activation from its name.

    Parameters
    ----------
    name : str
        One of `ACTIVATIONS`.

    Returns
    -------
    Activation

    Raises
    ------
    ArgumentError
        If there is none of that name; the message lists the names.
    KindError
        If `name` is not a string.

    Examples
    --------
    >>> from gbnn.layers.activations import activation
    >>> activation("leaky_relu")
    LeakyRelu(slope=0.01)
    """
    if not isinstance(name, str):
        raise KindError("activation", "a name", f"{name!r} of type {type(name).__name__}")
    if name not in ACTIVATIONS:
        raise ArgumentError("activation", f"one of {', '.join(ACTIVATIONS)}", repr(name))
    return ACTIVATIONS[name]()
