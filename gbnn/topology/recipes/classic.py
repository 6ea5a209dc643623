"""Static graphs, and methods that grow at random: SET, DSR, DEEP-R, MEST, ITOP."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gbnn.errors import KindError, check_float, check_int
from gbnn.layers import Initializer, normal
from gbnn.topology import prune, rates, redistribute
from gbnn.topology.clock import Clock, When, always, every_epoch, every_steps, never
from gbnn.topology.goals import at_start, relative
from gbnn.topology.grow.rules import Grow, random
from gbnn.topology.langevin import random_walk
from gbnn.topology.prune.limits import sign_flip
from gbnn.topology.recipes.choose import over_time, those
from gbnn.topology.rewiring import Rewiring
from gbnn.topology.schedules import Fraction, constant, cosine, piecewise
from gbnn.topology.scores import mest as mest_score
from gbnn.topology.site import Site

__all__ = ["deep_r", "dsr", "itop", "mest", "set_", "static"]


def static() -> Rewiring:
    """Return a rewiring that never rewires: the baseline of all others.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.static().due(topology.Clock(step=100, total_steps=1000))
    False
    """
    return Rewiring(prune=prune.magnitude, grow=random, when=never, fraction=constant(0.0))


def set_(
    fraction: float | Fraction = 0.3,
    *,
    start: Initializer = normal(0.1),  # noqa: B008 (a pure function)
    skip_last: bool = True,
    rewire_output: bool = True,
) -> Rewiring:
    """Sparse evolutionary training (Mocanu et al., 2018).

    At the end of each epoch, not the last: drop the `fraction` of positive weights nearest 0 and of negative
    ones, grow as many at random where no edge was.

    Parameters
    ----------
    fraction : float or callable
        ζ; the paper takes 0.3.
    start : callable
        Values of new edges; the authors' code draws normal numbers of deviation 0.1.
    skip_last : bool
        Not after the last epoch.
    rewire_output : bool
        Whether the last layer takes part (in the authors' SciPy code it does).

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.set_(0.2).replaces_update
    False
    """
    return Rewiring(
        prune=prune.set_magnitude,
        grow=random,
        when=every_epoch(skip_last=skip_last),
        fraction=over_time(fraction),
        start=start,
        keep_regrown=False,  # only nearly full layers regrow what they dropped, and then it is drawn anew
        layers=those(rewire_output),
    )


def dsr(
    aim: int | float = 600,
    when: When | None = None,
    *,
    threshold: float = 1e-3,
    rewire_output: bool = True,
) -> Rewiring:
    """Dynamic sparse reparameterization (Mostafa & Wang, 2019, arXiv:1902.05967).

    Edges with |w| below one threshold of all layers go; it is halved after a rewiring that dropped more than
    1.1·`aim` edges, doubled after less than 0.9·`aim`. As many grow at random, divided among the layers in
    proportion to the edges that have survived, from weight 0.

    Parameters
    ----------
    aim : int or float
        Edges to move each time, or their share of all (a float). The authors' code takes 600.
    when : callable, optional
        Default: every 100 steps to the end. (The authors let the interval grow on large data: `doubling`.)
    threshold : float
        The first one.
    rewire_output : bool
        Whether the last layer takes part.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.dsr(aim=0.1, when=topology.doubling(100, (0.2, 0.5)))
    """
    return Rewiring(
        prune=prune.magnitude,
        grow=random,
        when=every_steps(100, until=1.0) if when is None else when,
        fraction=constant(0.0),  # the threshold decides
        rates=rates.adaptive_threshold(threshold, aim),
        allocate=redistribute.by_survivors,
        keep_regrown=False,
        layers=those(rewire_output),
    )


def deep_r(
    learning_rate: float | Callable[[int], float],
    *,
    l1: float = 1e-4,
    temperature: float | None = None,
    rewire_output: bool = True,
) -> Rewiring:
    """DEEP-R, deep rewiring (Bellec et al., 2018, arXiv:1711.05136).

    At every step, after its update: a weight is pulled towards 0 and shaken (`random_walk`); edges whose
    weight has changed its sign go, as many grow at random from weight 0, each with a sign of its own.

    Parameters
    ----------
    learning_rate : float or callable
        The optimizer's, which is plain `training.sgd` in the paper; or ``step -> rate``.
    l1, temperature
        As for `random_walk`.
    rewire_output : bool
        Whether the last layer takes part.

    Notes
    -----
    An edge that has just gone is not grown at once, unless there is no other place. The signs of the first
    edges are those after the first update.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.deep_r(0.05).due(topology.Clock(step=7))
    True
    """
    return Rewiring(
        prune=sign_flip,
        grow=random,
        when=always,
        fraction=constant(0.0),  # the signs decide
        keep_regrown=False,
        layers=those(rewire_output),
        each_step=random_walk(learning_rate, l1, temperature),
    )


def itop(
    grow: Grow = random,
    every: int = 1500,
    fraction: float | Fraction = 0.5,
    *,
    until: float | int = 1.0,
    rewire_output: bool = True,
) -> Rewiring:
    """In-time over-parameterization (Liu et al., 2021, arXiv:2102.02887): rewire rarely, a lot, to the end.

    Drop the smallest |w|; grow by any rule, from weight 0. The more different edges a layer has had in all
    (`Rewired.explored`), the better, if new ones get the time to prove themselves.

    Parameters
    ----------
    grow : callable
        `random` as in the paper's SET-ITOP, or `gradient` (RigL-ITOP).
    every : int
        Steps between rewirings: 1500 for SET-ITOP, 4000 for RigL-ITOP in the paper.
    fraction : float or callable
        The first share that moves, falling to 0 along a cosine.
    until : float or int
        Where rewiring ends.
    rewire_output : bool
        Whether the last layer takes part.

    Notes
    -----
    The authors grow each absent edge with the same chance, just dropped ones too, so that their numbers of
    edges vary; here they are exact, and `random` grows where no edge was. Edges that `gradient` brings back
    at once keep their weight.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.itop(topology.gradient, every=4000)
    """
    check_int("every", every, 1)
    return Rewiring(
        prune=prune.magnitude,
        grow=grow,
        when=every_steps(every, until),
        fraction=over_time(fraction, lambda share: cosine(share, until)),
        layers=those(rewire_output),
    )


def mest(
    soft: bool = False,
    *,
    gradient_weight: float = 0.01,
    every: int = 5,
    fractions: Sequence[float] = (0.2, 0.1, 0.0),
    steps: Sequence[float | int] = (0.5625, 0.75),
    rewire_output: bool = True,
) -> Rewiring:
    """MEST, memory-economic sparse training (Yuan et al., 2021, arXiv:2110.14032).

    Every few epochs the edges of smallest |w| + λ·|g| go and as many grow at random from weight 0; the share
    that moves falls by steps (elastic mutation). With `soft` memory bound the edges of the start are kept
    and that share of them is grown in addition, so that old and new ones are trained together until the next
    time; at the end there are as many as at the start.

    Parameters
    ----------
    soft : bool
        EM&S instead of EM.
    gradient_weight : float
        λ: 0.01 as in the paper's score; the authors' code has 0 by default.
    every : int
        Epochs between rewirings.
    fractions : sequence of float
        Shares of the edges of the start: the paper goes from 0.90 to 0.92 sparse and back, then 0.91.
    steps : sequence of float or int
        When the next of `fractions` begins: epochs 90 and 120 of 160 in the paper.
    rewire_output : bool
        Whether the last layer takes part.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.mest(soft=True, every=1)
    """
    share = piecewise(fractions, steps)
    scored = prune.lowest(mest_score(check_float("gradient_weight", gradient_weight, 0)))

    if not isinstance(soft, bool):
        raise KindError("soft", "True or False", repr(soft))
    each = every_epoch(every)

    def when(clock: Clock) -> bool:
        # With soft memory the very end comes down to the edges of the start.
        return each(clock) or (soft and clock.last_in_epoch and clock.epoch == clock.epochs - 1)

    def more(clock: Clock) -> float:
        last = clock.last_in_epoch and clock.epoch == clock.epochs - 1
        return 1.0 if last else 1 + share(clock)

    def down_to_start(sites: Sequence[Site], fraction: float) -> list[float]:
        return [max(0.0, 1 - at_start(site) / max(1, site.weights.nnz)) for site in sites]

    return Rewiring(
        prune=scored,
        grow=random,
        when=when,
        fraction=constant(0.0) if soft else share,
        rates=down_to_start if soft else rates.equal,
        goal=relative(more) if soft else None,
        allocate=redistribute.by_survivors if soft else redistribute.same,
        keep_regrown=False,
        layers=those(rewire_output),
    )
