"""The random walk of weights that DEEP-R rewires by."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.errors import check_float
from gbnn.topology.clock import Clock
from gbnn.topology.prune.limits import SIGN
from gbnn.topology.site import EachStep, Site

__all__ = ["random_walk"]

Array = np.ndarray[Any, Any]


def random_walk(
    learning_rate: float | Callable[[int], float], l1: float = 1e-4, temperature: float | None = None
) -> EachStep:
    """Make a `Rewiring.each_step` that adds DEEP-R's pull to zero and noise to a layer's weights.

    An edge has a sign of its own, s, in `Memory.edges`, and the strength θ = s·w. To what the optimizer did,
    θ += -rate·l1 + sqrt(2·rate·temperature)·ν is added, with ν standard normal. Edges whose θ has become
    negative are dormant: `sign_flip` prunes them. New edges draw their sign at random. Bellec et al., 2018,
    arXiv:1711.05136.

    Parameters
    ----------
    learning_rate : float or callable
        That of the optimizer (plain SGD in the paper), or ``step -> rate``.
    l1 : float
        α of the paper; the authors' code takes 1e-4.
    temperature : float, optional
        Default: rate / 210, as in the authors' code.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.from_dense([[1e-6, 1.0]])
    >>> (site,) = topology.sites(model.parameters())
    >>> step = topology.random_walk(0.1, l1=1e-4, temperature=0.0)
    >>> step(site, topology.Clock(0), np.random.default_rng(0))
    >>> topology.sign_flip(site, 0.0, np.random.default_rng(0))
    array([0])
    """
    fixed = None if callable(learning_rate) else check_float("learning_rate", learning_rate, 0)
    pull = check_float("l1", l1, 0)
    heat = None if temperature is None else check_float("temperature", temperature, 0)

    def each_step(site: Site, clock: Clock, rng: np.random.Generator) -> None:
        rate = learning_rate(clock.step) if callable(learning_rate) else fixed
        rate = check_float("learning_rate", rate, 0)
        values = site.weights.values
        sign = site.memory.edges.get(SIGN)
        if sign is None:
            sign = np.sign(values).astype(np.int8)
        unsigned = np.flatnonzero(sign == 0)
        sign[unsigned] = rng.choice(np.array([-1, 1], dtype=np.int8), unsigned.size)
        site.memory.edges[SIGN] = sign
        noise = rng.standard_normal(values.size, dtype=values.dtype)
        noise *= math.sqrt(2 * rate * (rate / 210 if heat is None else heat))
        noise -= values.dtype.type(rate * pull) * sign
        site.weights.add(noise)

    return each_step
