"""Published methods as combinations of the rules, a few lines each."""

from __future__ import annotations

from gbnn.errors import check_int
from gbnn.layers import Initializer, normal
from gbnn.topology.clock import every_epoch, every_steps
from gbnn.topology.grow import gradient, random
from gbnn.topology.prune import magnitude, set_magnitude
from gbnn.topology.rewiring import Rewiring, not_full
from gbnn.topology.schedules import Fraction, constant, cosine
from gbnn.topology.site import Site

__all__ = ["rigl", "set_"]


def _without_output(site: Site) -> bool:
    return not_full(site) and site.index < site.count - 1


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
        prune=set_magnitude,
        grow=random,
        when=every_epoch(skip_last=skip_last),
        fraction=fraction if callable(fraction) else constant(fraction),
        start=start,
        keep_regrown=False,  # only nearly full layers regrow what they dropped, and then it is drawn anew
        layers=not_full if rewire_output else _without_output,
    )


def rigl(
    every: int = 100,
    fraction: float | Fraction = 0.3,
    *,
    until: float | int = 0.75,
    rewire_output: bool = True,
) -> Rewiring:
    """Rigging the lottery (Evci et al., 2020): drop by magnitude, grow by gradient.

    Every `every` steps, before `until` of the training: drop the smallest |w|, grow the largest |gradient|
    among all edges not kept. An edge dropped and grown at once keeps its weight and state; others start at
    0. The step that rewires makes no weight update.

    Parameters
    ----------
    every : int
        ΔT.
    fraction : float or callable
        α, falling to 0 along a cosine.
    until : float or int
        Fraction of all steps (float) or a number of steps (int).
    rewire_output : bool
        Whether the last layer takes part.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.rigl(every=50).replaces_update
    True
    """
    check_int("every", every, 1)
    return Rewiring(
        prune=magnitude,
        grow=gradient,
        when=every_steps(every, until),
        fraction=fraction if callable(fraction) else cosine(fraction, until),
        replaces_update=True,
        layers=not_full if rewire_output else _without_output,
    )
