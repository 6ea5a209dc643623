"""The rewiring that the command line asks for."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from gbnn import topology
from gbnn.errors import ArgumentError
from gbnn.topology import Rewirer

__all__ = ["METHODS", "rewiring_of"]

# All recipes but the one that needs layers of its own kind.
METHODS: dict[str, Callable[..., Rewirer]] = {
    name.rstrip("_").replace("_", "-"): getattr(topology, name)
    for name in topology.recipes.__all__
    if name != "top_kast"
}

# What may be given, and how a recipe calls it.
OPTIONS = {name: f"rewire_{name}" for name in ("fraction", "every", "density", "budget")}


def rewiring_of(options: Namespace, learning_rate: Callable[[int], float]) -> Rewirer | None:
    """Make the recipe of ``--rewire``, with those of its options that are given.

    Raises
    ------
    ArgumentError
        On an unknown method, an option that it does not take (none takes any without a method), or one that
        it needs.
    """
    method = options.rewire
    if method != "none" and method not in METHODS:
        raise ArgumentError("--rewire", f"one of none, {', '.join(METHODS)}", method)
    takes = {} if method == "none" else inspect.signature(METHODS[method]).parameters
    given: dict[str, Any] = {"learning_rate": learning_rate} if "learning_rate" in takes else {}
    for name, option in OPTIONS.items():
        flag, value = f"--{option.replace('_', '-')}", getattr(options, option)
        if value is None:
            if name in takes and takes[name].default is inspect.Parameter.empty:
                raise ArgumentError(flag, f"a number: --rewire {method} needs it", None)
        elif name not in takes:
            raise ArgumentError(flag, f"nothing: --rewire {method} takes no such option", value)
        else:
            given[name] = value
    return None if method == "none" else METHODS[method](**given)
