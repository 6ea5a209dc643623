"""Growth of hash-addressed layers: up to 2**60 inputs, edges only where data have asked for them."""

from __future__ import annotations

from collections.abc import Callable

from gbnn.errors import check_int
from gbnn.layers import Initializer, zeros
from gbnn.topology.clock import every_steps
from gbnn.topology.grow.offers import Offer, strongest
from gbnn.topology.on_demand import OnDemand, sparse_inputs
from gbnn.topology.prune.unused import nothing, unused
from gbnn.topology.recipes.choose import over_time
from gbnn.topology.schedules import Fraction
from gbnn.topology.seen import count_seen
from gbnn.topology.site import Site
from gbnn.topology.use import track_use

__all__ = ["grow_on_demand"]


def grow_on_demand(
    budget: int | Callable[[Site], int],
    every: int = 10,
    *,
    offer: Offer = strongest,
    pace: float | Fraction = 0.02,
    exchange: float | Fraction = 0.01,
    trial: int = 3,
    patience: int | None = None,
    start: Initializer = zeros,
    until: float | int = 0.75,
    remembered: int = 2**20,
    layers: Callable[[Site], bool] = sparse_inputs,
) -> OnDemand:
    """Begin with no edges and grow them from what appears in data: for layers of up to 2**60 inputs.

    Parameters
    ----------
    budget : int or callable
        Edges that each layer taking part may have; or ``(site) -> edges``.
    every : int
        Steps between rewirings, each O(nnz).
    offer : callable
        Which edges come: `grow.strongest`, by the largest |gradient| over active inputs x outputs, exactly;
        `grow.fan_out(8)`, some for each input that is new, which costs less; or one after the other
        (`grow.one_after_another`).
    pace : float or callable
        The share of the budget that may come at once while there is room. What the strongest of one batch are
        says little of the next one, so not too many; 1.0 for `grow.fan_out`.
    exchange : float or callable
        The share that may come at once when there is no room, for edges of smallest |w|.
    trial : int
        Batches that must have touched an edge before it can go so.
    patience : int, optional
        Steps after which an edge goes that no batch has touched. None: it stays.
    start : callable
        Values of new edges. With zeros nothing changes as an edge comes. But a layer whose outputs are all 0
        learns nothing through a rectifier, whose slope there is 0, and little where the next layer starts
        alike in all neurons: give `layers.normal(0.3)`, say, or an activation with a slope at 0.
    until : float or int
        Where rewiring ends: a share of all steps, or a step.
    remembered : int
        Inputs without edges of which it is counted how often they have come, unless `offer` is
        `grow.strongest`, which does not ask; see `count_seen`.
    layers : callable
        ``(site) -> bool``. Default: those that get sparse batches from outside the network.

    Returns
    -------
    OnDemand

    Notes
    -----
    A layer of 2**60 inputs with random first edges never sees one of them again: they would be in the way of
    nothing, and of no use. Begin with ``Linear.random(2**60, 512, nnz=0)``.

    Examples
    --------
    >>> from gbnn import data, layers, topology, training
    >>> texts = ["turn on the light", "lights off", "play some music", "stop the music"] * 8
    >>> x = data.HashingText(bits=60).fit_transform(texts)
    >>> first = layers.Linear.random(2**60, 32, nnz=0, seed=0)
    >>> model = layers.Chain(first, layers.Tanh(), layers.Dense.random(32, 2, seed=1))
    >>> rewiring = topology.grow_on_demand(2000, every=2, pace=0.1)
    >>> batches = data.batches(x, [0, 0, 1, 1] * 8, batch_size=8)
    >>> adam = training.adam(1e-2)
    >>> for step in training.train(model, batches, optimizer=adam, rewiring=rewiring, epochs=20):
    ...     pass
    >>> 0 < first.weights.nnz <= 2000, step.loss < 0.1
    (True, True)
    """
    check_int("every", every, 1)
    counting = count_seen(remembered)
    return OnDemand(
        budget=budget,
        offer=offer,
        when=every_steps(every, until),
        idle=nothing if patience is None else unused(patience),
        pace=over_time(pace),
        exchange=over_time(exchange),
        trial=trial,
        start=start,
        layers=layers,
        each_step=(track_use,) if offer is strongest else (track_use, counting),
    )
