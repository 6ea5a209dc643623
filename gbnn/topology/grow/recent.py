"""Gradients of the last steps, of any edge, from what is remembered of the layer's inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, check_float, check_int
from gbnn.semirings import Probe
from gbnn.topology.clock import Clock
from gbnn.topology.grow.rules import Grow
from gbnn.topology.grow.strongest import strongest_absent
from gbnn.topology.site import EachStep, Site

__all__ = ["recent", "recent_gradient", "remember"]

Array = np.ndarray[Any, Any]
X, DY, NEXT, STEP = "recent x", "recent dy", "recent next", "recent step"


def remember(steps: int = 32) -> EachStep:
    """Make a `Rewiring.each_step` that keeps a layer's inputs and output gradients of the last `steps` steps.

    They stand in `Memory.layer`, O(steps·batch·(in + out)) of memory; the mean or running mean of the
    gradient by any edge, present or absent, can be computed of them: see `recent`.

    Parameters
    ----------
    steps : int
        At least 1. Where several rewirings in turn remember, the most that one asks for.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.random(4, 3, nnz=5, seed=0)
    >>> y, pullback = model.forward(np.ones((2, 4)))
    >>> _, gradients = pullback(np.ones_like(y))
    >>> (site,) = topology.sites(model.parameters(), gradients)
    >>> topology.remember(8)(site, topology.Clock(0), np.random.default_rng(0))
    >>> site.memory.layer["recent x"].shape
    (4, 8, 2)
    """
    check_int("steps", steps, 1, 2**16)

    def each_step(site: Site, clock: Clock, rng: np.random.Generator) -> None:
        probe, memory = site.dense_probe, site.memory.layer
        if X in memory and memory[X].shape[1] < steps:  # of another rewiring, that remembers less
            for name in (X, DY):
                old = np.roll(memory[name], -int(memory[NEXT]), axis=1)  # the oldest first
                memory[name] = np.concatenate(
                    [old, np.zeros((len(old), steps - old.shape[1], old.shape[2]), dtype=old.dtype)], axis=1
                )
            memory[NEXT] = np.array(old.shape[1])
        if int(memory.get(STEP, -1)) == clock.step:
            return  # another rewiring, in turn with this one, has just remembered it
        memory[STEP] = np.array(clock.step)
        held = memory[X].shape[1] if X in memory else steps
        at = int(memory.get(NEXT, 0)) % held
        for name, array in ((X, probe.x), (DY, probe.dy)):
            rows, features = array.shape
            ring = memory.get(name)
            if ring is None or ring.shape[2] < rows:
                wider = np.zeros((features, held, rows), dtype=array.dtype)
                if ring is not None:
                    wider[:, :, : ring.shape[2]] = ring
                ring = memory[name] = wider
            ring[:, at, :rows] = array.T
            ring[:, at, rows:] = 0  # a smaller batch: samples of gradient zero
        memory[NEXT] = np.array(at + 1)

    return each_step


def recent(site: Site, decay: float = 1.0) -> Probe:
    """Return the derivatives by any edge summed over the remembered steps, one `decay` times that after it.

    With a decay of 1 their sum over these steps; else, but for a factor and for the steps before them, the
    running mean of SNFS and the momentum of SGD: what is left out is of weight decay^steps.

    Parameters
    ----------
    site : Site
        With what `remember` has kept.
    decay : float
        In (0, 1].

    Raises
    ------
    ArgumentError
        If nothing has been remembered.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.from_dense([[1.0]])
    >>> memory = {}
    >>> for step, x in enumerate((10.0, 1.0)):
    ...     y, pullback = model.forward(np.array([[x]]))
    ...     _, gradients = pullback(np.ones_like(y))
    ...     (site,) = topology.sites(model.parameters(), gradients, memory=memory)
    ...     topology.remember(4)(site, topology.Clock(step), np.random.default_rng(0))
    >>> topology.recent(site, 0.5).block(0, 1)  # 1 + 0.5 * 10
    array([[6.]])
    """
    keep = check_float("decay", decay, 0, 1, open_low=True)
    memory = site.memory.layer
    if NEXT not in memory:
        wanted = "remember() as each_step of the rewiring, and a step before this one"
        raise ArgumentError(f"rewiring {site.name}", wanted, "no gradients remembered")
    x, dy, after = memory[X], memory[DY], int(memory[NEXT])
    steps = x.shape[1]
    age = (after - 1 - np.arange(steps)) % steps
    weight = (keep**age).astype(dy.dtype)
    weighted = dy * weight[None, :, None]
    return Probe(x.reshape(len(x), -1).T, weighted.reshape(len(dy), -1).T)


def recent_gradient(decay: float = 0.9) -> Grow:
    """Make a rule that grows the edges of largest |running gradient| of all not kept (SNFS; momentum).

    Exact over the steps that `remember` keeps; no array of all edges' running means is made. Edges just
    dropped compete like any other. Dettmers & Zettlemoyer, 2019, arXiv:1907.04840; with a decay of 1, the
    mean of several batches, as in implementations of RigL and SRigL.

    Parameters
    ----------
    decay : float
        In (0, 1]: 0.9 for the momentum of SGD at 0.9.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.Rewiring(
    ...     topology.magnitude,
    ...     topology.recent_gradient(0.9),
    ...     topology.every_steps(100),
    ...     topology.constant(0.3),
    ...     each_step=topology.remember(32),
    ... )
    """
    check_float("decay", decay, 0, 1, open_low=True)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return strongest_absent(recent(site, decay), site.kept(dropped), count)

    return grow
