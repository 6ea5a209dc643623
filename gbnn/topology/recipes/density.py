"""Methods whose density changes: gradual magnitude pruning, GraNet; and Top-KAST's two sets."""

from __future__ import annotations

from gbnn.errors import check_int
from gbnn.layers import Initializer, zeros
from gbnn.topology import prune, rates
from gbnn.topology.clock import every_steps
from gbnn.topology.exchange import Exchange
from gbnn.topology.goals import from_start, never_more
from gbnn.topology.grow.rules import Grow, gradient, random
from gbnn.topology.in_turn import InTurn, in_turn
from gbnn.topology.recipes.choose import by_place, over_time
from gbnn.topology.rewiring import Rewiring
from gbnn.topology.schedules import Fraction, constant, cosine, cubic

__all__ = ["gmp", "granet", "top_kast"]


def gmp(
    density: float,
    every: int = 100,
    *,
    begin: float | int = 0.0,
    end: float | int = 0.75,
    rewire_output: bool = True,
) -> Rewiring:
    """Gradual magnitude pruning (Zhu & Gupta, 2017, arXiv:1710.01878): from the model's density to another.

    Every `every` steps the smallest |w| of all layers together go, so that the edges follow
    last + (first - last)·(1 - t)³. Make the model as dense as it is to begin; nothing
    grows, also where a model is sparser than the goal. `Dense` layers (`models.mlp` makes a layer that gets
    every edge so) have no edges that could go, and are not counted.

    Parameters
    ----------
    density : float
        At the end: a share of all places of the layers taking part.
    every : int
        Steps between prunings.
    begin, end : float or int
        Where t is 0 and 1: shares of all steps (float) or steps (int). There must be a multiple of `every`
        at or after the end, for the density to be reached.
    rewire_output : bool
        Whether the last layer takes part.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.gmp(0.01, every=50)
    """
    check_int("every", every, 1)
    return Rewiring(
        prune=prune.magnitude,
        grow=random,
        when=every_steps(every, end, begin=begin, closing=True),  # the last one comes down to the density
        fraction=constant(0.0),  # the goal decides
        rates=rates.overall(),
        goal=never_more(from_start(density, cubic(1.0, 0.0, begin=begin, end=end))),
        layers=by_place(rewire_output),
    )


def granet(
    density: float,
    every: int = 100,
    fraction: float | Fraction = 0.5,
    *,
    grow: Grow = gradient,
    begin: float | int = 0.0,
    end: float | int = 0.75,
    rewire_output: bool = True,
) -> InTurn:
    """GraNet (Liu et al., 2021, arXiv:2106.10404): gradual pruning, each time with some regeneration.

    Each time, first `gmp` to the density of the moment; then, in each layer, half of the edges left go by
    |w| and as many grow by gradient; those that come back at once keep their weight, others start at 0. (The
    authors' code rounds that share up, lets it fall to 0.005 and goes on after the pruning has ended.)

    Parameters
    ----------
    density, every, begin, end, rewire_output
        As for `gmp`.
    fraction : float or callable
        The share that is exchanged at first, falling to 0 along a cosine.
    grow : callable
        `gradient` as in the paper.

    Examples
    --------
    >>> from gbnn import topology
    >>> len(topology.granet(0.05).parts)
    2
    """
    pruning = gmp(density, every, begin=begin, end=end, rewire_output=rewire_output)
    takes_part = by_place(rewire_output)
    exchange = Rewiring(
        prune=prune.magnitude,
        grow=grow,
        when=every_steps(every, end, begin=begin),
        fraction=over_time(fraction, lambda share: cosine(share, end)),
        layers=lambda site: takes_part(site) and site.free > 0,
    )
    return in_turn(pruning, exchange)


def top_kast(
    every: int = 100,
    fraction: float | Fraction = 0.1,
    *,
    until: float | int = 1.0,
    start: Initializer = zeros,
) -> Exchange:
    """Top-KAST (Jayakumar et al., 2020, arXiv:2106.03517): a forward set within a wider backward set.

    For models of `layers.ReserveLinear`. Every `every` steps the strongest edges of both sets become the
    weights, the others the reserve, which is trained but not used. The authors keep all edges' weights, and
    so let absent ones come into the wider set as others fall behind; here a share of the reserve, its
    weakest, is drawn anew at random.

    Parameters
    ----------
    every : int
        Steps between exchanges (in the paper, up to 100 change nothing).
    fraction : float or callable
        The share of the reserve that is drawn anew.
    until : float or int
        Where rewiring ends.
    start : callable
        Values of edges drawn anew.

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> sparse = layers.Linear.random(784, 1000, nnz=8_000, seed=0)
    >>> layer = layers.ReserveLinear.of(sparse, 4_000, penalty=1e-5, seed=0)
    >>> rewiring = topology.top_kast(every=50)
    """
    check_int("every", every, 1)
    return Exchange(every_steps(every, until), over_time(fraction), start)
