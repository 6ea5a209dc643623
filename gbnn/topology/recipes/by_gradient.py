"""Methods that grow by gradients: RigL, SNFS, sparse momentum, SRigL, GSE."""

from __future__ import annotations

from gbnn.errors import check_int
from gbnn.topology import prune, rates, redistribute
from gbnn.topology.clock import every_epoch, every_steps
from gbnn.topology.fan_in import ConstantFanIn
from gbnn.topology.grow.candidates import Distribution, grabo, sampled_gradient
from gbnn.topology.grow.recent import recent_gradient, remember
from gbnn.topology.grow.rules import gradient
from gbnn.topology.recipes.choose import over_time, those
from gbnn.topology.rewiring import Rewiring
from gbnn.topology.schedules import Fraction, cosine

__all__ = ["gse", "rigl", "snfs", "sparse_momentum", "srigl"]


def rigl(
    every: int = 100,
    fraction: float | Fraction = 0.3,
    *,
    until: float | int = 0.75,
    rewire_output: bool = True,
) -> Rewiring:
    """Rigging the lottery (Evci et al., 2020, arXiv:1911.11134): drop by magnitude, grow by gradient.

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
        Share of all steps (float) or a number of steps (int).
    rewire_output : bool
        Whether the last layer takes part.

    Notes
    -----
    The authors' code adds noise of deviation 1e-5 to |w| to break ties, and rewires at its first and last
    step, too; here the earlier edge goes, and rewiring is after step 0 and before `until`.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.rigl(every=50).replaces_update
    True
    """
    check_int("every", every, 1)
    return Rewiring(
        prune=prune.magnitude,
        grow=gradient,
        when=every_steps(every, until),
        fraction=over_time(fraction, lambda share: cosine(share, until)),
        replaces_update=True,
        layers=those(rewire_output),
    )


def snfs(
    every: int = 100,
    fraction: float | Fraction = 0.3,
    *,
    decay: float = 0.9,
    steps: int = 16,
    until: float | int = 0.75,
    rewire_output: bool = True,
) -> Rewiring:
    """Sparse networks from scratch, as RigL's authors compare with it: RigL by the running mean gradient.

    Dettmers & Zettlemoyer, 2019, arXiv:1907.04840, without its redistribution (see `sparse_momentum`). What
    differs from `rigl` is that edges grow by the running mean of the gradient, of the given decay, over the
    last `steps` steps: `recent_gradient`. Those before are of weight decay^steps. The step that rewires also
    updates its weights, before.

    Parameters
    ----------
    every, fraction, until, rewire_output
        As for `rigl`.
    decay : float
        Of the running mean.
    steps : int
        Steps whose inputs and output gradients are kept: O(steps·batch·(in + out)) of memory.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.snfs(every=50).watches
    True
    """
    check_int("every", every, 1)
    return Rewiring(
        prune=prune.magnitude,
        grow=recent_gradient(decay),
        when=every_steps(every, until),
        fraction=over_time(fraction, lambda share: cosine(share, until)),
        layers=those(rewire_output),
        each_step=remember(steps),
    )


def sparse_momentum(
    fraction: float | Fraction = 0.5,
    *,
    low: float = 0.005,
    momentum: float = 0.9,
    steps: int = 32,
    rewire_output: bool = True,
) -> Rewiring:
    """Sparse momentum (Dettmers & Zettlemoyer, 2019, arXiv:1907.04840).

    At the end of each epoch, not the last: drop the smallest |w|; grow as many where the momentum of absent
    edges is largest, divided among the layers in proportion to the mean |momentum| of their edges. Layers
    less than a fifth empty that are to grow drop at most the share that is empty.

    Parameters
    ----------
    fraction : float or callable
        The first share that moves, falling to `low` at the end of training along a cosine.
    low : float
    momentum : float
        That of the optimizer, which must keep one: `training.sgd(rate, momentum=0.9)`, `adam`.
    steps : int
        Steps of which the momentum of absent edges is made: those before have weight momentum^steps.
    rewire_output : bool
        Whether the last layer takes part.

    Notes
    -----
    The authors' numbers of edges vary a little, and are corrected by the next rewirings; here they are exact.
    There a new edge begins with the momentum its absent edge had, and after each rewiring the momentum of
    absent edges is set to the mean of the others; here new edges begin at 0, and absent ones are ranked by
    their gradients alone. With Adam that is the running mean, not divided by the root of its square.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.sparse_momentum().fraction(topology.Clock(step=0, total_steps=100))
    0.5
    """
    return Rewiring(
        prune=prune.magnitude,
        grow=recent_gradient(momentum),
        when=every_epoch(),
        fraction=over_time(fraction, lambda share: cosine(share, 1.0, low=low)),
        rates=rates.rounded_up(rates.momentum_guard),
        allocate=redistribute.by_momentum,
        layers=those(rewire_output),
        each_step=remember(steps),
    )


def srigl(
    every: int = 100,
    fraction: float | Fraction = 0.3,
    *,
    ablation: float = 0.3,
    until: float | int = 0.75,
    rewire_output: bool = True,
) -> Rewiring:
    """Structured RigL (Lasby et al., 2024, arXiv:2305.02299): every neuron left has the same fan-in.

    RigL's drop and growth, but neurons that few salient edges enter are ablated, and the others share the
    layer's edges evenly: see `ConstantFanIn`. A layer has as many edges as its neurons can share, so fewer
    than it began with: up to one a neuron, at a fan-in of 2.5 a fifth. `wire.constant_fan_in` is the graph to
    begin with.

    Parameters
    ----------
    every, fraction, until, rewire_output
        As for `rigl`. The neurons of the last layer are never ablated.
    ablation : float
        γ: 0.3 in the paper; 0.95 for vision transformers.

    Notes
    -----
    In the authors' code |gradient| is ranked over all places, and what ablated neurons lose is made good by
    the next largest |w| elsewhere; here by |gradient|.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.srigl(every=50).replaces_update
    True
    """
    check_int("every", every, 1)
    share = over_time(fraction, lambda share: cosine(share, until))
    rules = ConstantFanIn(share, ablation)
    return Rewiring(
        prune=rules.prune,
        grow=rules.grow,
        when=every_steps(every, until),
        fraction=share,
        goal=rules.goal,
        allocate=rules.allocate,
        replaces_update=True,
        layers=those(rewire_output),
    )


def gse(
    every: int = 1000,
    fraction: float | Fraction = 0.2,
    *,
    candidates: float | int = 1.0,
    distribution: Distribution = grabo,
    until: float | int = 0.75,
    rewire_output: bool = True,
) -> Rewiring:
    """Guided stochastic exploration (Heddes et al., 2024, arXiv:2401.06898): gradients of a sample only.

    Grow, among sampled absent edges, those of largest |gradient| from weight 0; drop as many of smallest
    |w| among those there were. The cost does not depend on in x out.

    Parameters
    ----------
    every, fraction, until, rewire_output
        As for `rigl`.
    candidates : float or int
        Pairs that are sampled: a float is a multiple of the layer's edges.
    distribution : callable
        `grow.candidates.uniform`, `grow.grabo` or `grow.graest`.

    Notes
    -----
    The authors' code divides the growth among all layers together, rewires before the step's update, and
    grows fewer where the sample yields too few; here each layer keeps its number of edges.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.gse(every=100, candidates=2.0)
    """
    check_int("every", every, 1)
    return Rewiring(
        prune=prune.magnitude,
        grow=sampled_gradient(candidates, distribution),
        when=every_steps(every, until),
        fraction=over_time(fraction, lambda share: cosine(share, until)),
        layers=those(rewire_output),
    )
