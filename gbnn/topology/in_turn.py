"""`Rewirer`, what training takes as its rewiring, and several of them in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gbnn.errors import KindError
from gbnn.topology.clock import Clock
from gbnn.topology.rewired import Rewired
from gbnn.topology.site import Site

__all__ = ["InTurn", "Rewirer", "in_turn"]


@runtime_checkable
class Rewirer(Protocol):
    """What `train` takes as its rewiring: a `Rewiring`, several in turn, or a class of the user's own."""

    @property
    def watches(self) -> bool:
        """Whether `watch` wants to be called."""

    def due(self, clock: Clock) -> bool:
        """Return whether to rewire at this step."""

    def skips_update(self, clock: Clock) -> bool:
        """Return whether this step leaves out its weight update."""

    def watch(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> None:
        """See every step: after its update, before its rewiring."""

    def apply(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> list[Rewired]:
        """Rewire now."""


@dataclass(frozen=True)
class InTurn:
    """Several rewirings, each applied in its turn; see `in_turn`."""

    parts: tuple[Rewirer, ...]

    @property
    def watches(self) -> bool:
        """Whether one of them watches."""
        return any(part.watches for part in self.parts)

    def due(self, clock: Clock) -> bool:
        """Return whether one of them is due."""
        return any(part.due(clock) for part in self.parts)

    def skips_update(self, clock: Clock) -> bool:
        """Return whether one of them rewires at this step instead of the weight update."""
        return any(part.skips_update(clock) for part in self.parts)

    def watch(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> None:
        """Let each see the step."""
        for part in self.parts:
            part.watch(places, clock, rng)

    def apply(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> list[Rewired]:
        """Apply those that are due, the later ones to what the earlier ones have left."""
        return [done for part in self.parts if part.due(clock) for done in part.apply(places, clock, rng)]


def in_turn(*rewirings: Rewirer) -> InTurn:
    """Apply several rewirings one after the other: prune to a density, then move edges (GraNet).

    They share what is remembered of each layer (`Memory`). If one fails, those before it have moved their
    edges already.

    Parameters
    ----------
    *rewirings : Rewirer
        Each is applied when it is due.

    Raises
    ------
    KindError
        If one is no rewiring.

    Examples
    --------
    >>> from gbnn import topology
    >>> both = topology.in_turn(topology.gmp(0.1), topology.rigl())
    >>> both.due(topology.Clock(step=100, total_steps=1000))
    True
    """
    for k, rewiring in enumerate(rewirings):
        if not isinstance(rewiring, Rewirer):
            raise KindError(f"rewirings[{k}]", "a gbnn rewiring", type(rewiring).__name__)
    return InTurn(rewirings)
