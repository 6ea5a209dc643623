"""Methods that grow by link prediction, Cannistraci-Hebb training: CHT, CHTs, CHTss."""

from __future__ import annotations

import numpy as np

from gbnn.errors import check_float
from gbnn.topology import rates
from gbnn.topology.clock import Clock, When, every_epoch
from gbnn.topology.goals import from_start, never_more
from gbnn.topology.grow.hebb import cannistraci_hebb, hebb
from gbnn.topology.prune.percolation import percolation
from gbnn.topology.prune.rules import magnitude, sampled
from gbnn.topology.recipes.choose import by_place, over_time, those
from gbnn.topology.rewiring import Rewiring
from gbnn.topology.schedules import Fraction, cosine, sigmoid
from gbnn.topology.scores import Score, relative_importance, size
from gbnn.topology.site import Site

__all__ = ["cht", "chts", "chtss"]


def cht(
    fraction: float | Fraction = 0.3,
    when: When | None = None,
    *,
    overlap: float = 0.9,
    rewire_output: bool = False,
) -> Rewiring:
    """Cannistraci-Hebb training (Zhang et al., ICLR 2024): drop by magnitude, grow by network topology.

    The smallest |w| go, and with them the edges of neurons without input or output (`percolation`). As many
    grow where most short paths run within a local community (`hebb`, CH3-L3), from weight 0; no gradient is
    needed. A layer that grows again more than `overlap` of what it has dropped rests from then on.

    Parameters
    ----------
    fraction : float or callable
        ζ, falling to 0 at the end of training along a cosine, as in the authors' code.
    when : callable, optional
        Default: at the end of each epoch but the last.
    overlap : float
        In [0, 1]; 1 for layers that never rest.
    rewire_output : bool
        Whether the last layer takes part; in the paper it is dense.

    Notes
    -----
    The step that rewires makes no weight update, as in the authors' code. The scores are those of the node
    form (`cannistraci_hebb`), not of the paths. The first layer of the paper is wired by `wire.correlated`.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.cht().fraction(topology.Clock(step=50, total_steps=100))
    0.15
    """
    return Rewiring(
        prune=magnitude,
        grow=hebb,
        when=every_epoch() if when is None else when,
        fraction=over_time(fraction, lambda share: cosine(share, 1.0)),
        rates=rates.until_settled(overlap),
        also_drop=percolation,
        replaces_update=True,
        layers=those(rewire_output),
    )


def chts(
    fraction: float | Fraction = 0.3,
    when: When | None = None,
    *,
    score: Score = size,
    internal: bool = True,
    rewire_output: bool = False,
) -> Rewiring:
    """CHT with soft rules (Zhang et al., 2025, arXiv:2501.19107): what goes and what comes is drawn by lot.

    The edges to keep are drawn with chances in proportion to |w|^T, T rising from 1 to 3 in the course of
    training, the new ones in proportion to their CH2-L3 scores: early on more is explored. Percolation comes
    between, as in `cht`.

    Parameters
    ----------
    fraction, when, rewire_output
        As for `cht`.
    score : callable
        `scores.size`, or `scores.relative_importance`.
    internal : bool
        CH2-L3, or CH3-L3 (False).

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.chts(when=topology.every_steps(100)).watches
    True
    """
    return Rewiring(
        prune=sampled(score, _temperature),
        grow=cannistraci_hebb(internal=internal, sampled=True),
        when=every_epoch() if when is None else when,
        fraction=over_time(fraction, lambda share: cosine(share, 1.0)),
        also_drop=percolation,
        replaces_update=True,
        layers=those(rewire_output),
        each_step=_heat,
    )


def chtss(
    density: float,
    fraction: float | Fraction = 0.3,
    when: When | None = None,
    *,
    end: float | int = 0.75,
    steepness: float = 6.0,
    rewire_output: bool = False,
) -> Rewiring:
    """CHTs with a density that falls along a sigmoid (Zhang et al., 2025, arXiv:2501.19107).

    From the model's own density to another; the score of an edge is its relative importance among those of
    its two neurons.

    Parameters
    ----------
    density : float
        At the end: a share of all places of the layers taking part.
    fraction, when, rewire_output
        As for `chts`. Where the density asks for it more go, and in any case fewer grow.
    end : float or int
        Where the density is reached: a share of all steps, or a step; there must be a rewiring after it.
    steepness : float
        Of the sigmoid; the paper's k is 6.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.chtss(0.01)
    """
    check_float("density", density, 0, 1)
    soft = chts(fraction, when, score=relative_importance, rewire_output=rewire_output)
    return Rewiring(
        **{
            **vars(soft),
            "goal": never_more(from_start(density, sigmoid(1.0, 0.0, end=end, steepness=steepness))),
            "layers": by_place(rewire_output),
        }
    )


TEMPERATURE = "temperature"


def _heat(site: Site, clock: Clock, rng: np.random.Generator) -> None:
    """Remember T, 1 at the beginning of training and 3 at its end."""
    # Where the batches have no length, epochs tell how far training is.
    done, whole = (
        (clock.epoch, clock.epochs) if clock.total_steps is None else (clock.step, clock.total_steps)
    )
    site.memory.layer[TEMPERATURE] = np.array(1 + 2 * min(1.0, done / whole))


def _temperature(site: Site) -> float:
    return float(site.memory.layer.get(TEMPERATURE, 1.0))
