"""What is compared: a name -> a function that makes the rewiring, a row a method.

It is given the number of steps in an epoch and the learning rate, which few methods want to know.

Where a published table used other numbers than a recipe's own defaults, they stand here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn import topology
from gbnn.training import Schedule

Array = np.ndarray[Any, Any]
Make = Callable[[int, Schedule], topology.Rewirer | None]


def recipe(name: str, *given: Any, **options: Any) -> Make:
    """Return a function that calls a recipe of `gbnn.topology`, looked up when it is called."""
    return lambda steps, rate: getattr(topology, name)(*given, **options)


def nothing(steps: int, rate: Schedule) -> None:
    """Leave the edges where they are."""
    return


def small_or_most_negative(site: topology.Site, fraction: float, rng: np.random.Generator) -> Array:
    """Drop what sparse_learning's SET dropped when its table was made (and until a correction in 2020).

    Half of what goes are the positive weights nearest 0, as they should; the other half are the negative ones
    *furthest* from 0.
    """
    values = site.weights.values
    half = math.ceil(math.ceil(fraction * values.size) / 2)
    order = np.argsort(values, kind="stable")
    below, above = np.count_nonzero(values < 0), np.count_nonzero(values <= 0)
    return np.union1d(order[: min(half, below)], order[above : above + half])


def set_falling(steps: int, rate: Schedule) -> topology.Rewiring:
    """SET with the share of sparse_learning: from 0.5 along a cosine."""
    return topology.set_(topology.cosine(0.5, until=1.0, low=0.005))


def set_of_the_table(steps: int, rate: Schedule) -> topology.Rewiring:
    """SET as the column of LeNet-300-100 had it: the mistaken choice above, a share falling from 0.5."""
    return topology.Rewiring(
        prune=small_or_most_negative,
        grow=topology.random,
        when=topology.every_epoch(),
        fraction=topology.cosine(0.5, until=1.0, low=0.005),
    )


def set_from_zero(steps: int, rate: Schedule) -> topology.Rewiring:
    """SET as CHT's code has it: by size alone, new edges at 0, in place of that step's update."""
    return topology.Rewiring(
        prune=topology.magnitude,
        grow=topology.random,
        when=topology.every_epoch(),
        fraction=topology.constant(0.3),
        replaces_update=True,
    )


def rigl_each_epoch(steps: int, rate: Schedule) -> topology.Rewiring:
    """RigL as CHT's code has it: at the end of each epoch, whatever the batch."""
    return topology.rigl(every=steps)


def deep_r(steps: int, rate: Schedule) -> topology.Rewirer:
    """DEEP-R, which walks as fast as the optimizer does."""
    return topology.deep_r(rate)


def chts_by_its_command(steps: int, rate: Schedule) -> topology.Rewiring:
    """CHTs as the command of its authors has it (EM_S): denser at first, and much of that regrown each time.

    Each epoch all but the strongest 1 % of all places go; then 6 %, from 45 % of the training on 3.5 %, and
    from 75 % on 1 % are filled.
    """
    density = topology.piecewise([0.06, 0.035, 0.01], [0.45, 0.75])
    return dataclasses.replace(
        topology.chts(0.0),
        prune=topology.magnitude,
        rates=topology.rates.down_to(0.01),
        goal=topology.to_density(density),
        allocate=topology.redistribute.by_size,
        each_step=None,
    )


LENET: dict[str, Make] = {
    "dense": nothing,
    "static": nothing,
    "set": recipe("set_"),
    "set-falling": set_falling,
    "set-of-the-table": set_of_the_table,
    "sparse-momentum": recipe("sparse_momentum"),
    "dsr": recipe("dsr"),
    "deep-r": deep_r,
    "rigl": recipe("rigl"),
}
"""Methods for LeNet-300-100, where all three layers are sparse and rewired."""

WIDE: dict[str, Make] = {
    "dense": nothing,
    "static": nothing,
    "set": recipe("set_"),
    "set-from-zero": set_from_zero,
    "rigl": recipe("rigl"),
    "rigl-each-epoch": rigl_each_epoch,
    "cht": recipe("cht"),
    "chts": recipe("chts"),
    "chts-em-s": chts_by_its_command,
}
"""Methods for 784-1568-1568-1568-10, whose last layer is full and never rewired."""

COSTS: dict[str, Make] = {
    "set_": recipe("set_"),
    "rigl": recipe("rigl"),
    "snfs": recipe("snfs"),
    "sparse_momentum": recipe("sparse_momentum"),
    "srigl": recipe("srigl"),
    "dsr": recipe("dsr"),
    "deep_r": deep_r,
    "mest": recipe("mest"),
    "gmp": recipe("gmp", 0.005),
    "granet": recipe("granet", 0.005),
    "itop": recipe("itop"),
    "cht": recipe("cht"),
    "chts": recipe("chts"),
    "gse": recipe("gse"),
    "top_kast": recipe("top_kast"),
}
"""Every recipe that moves edges, with its own defaults."""
