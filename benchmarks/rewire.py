"""One rewiring that is not by gradient (SET), and each part of it, against one training step.

    python benchmarks/rewire.py [--width 4096] [--density 0.01] [--batch 128] [--share 0.3] [--memory 1000000]

All in one process, alternating: medians. Beside a part that takes up what is sorted already stands another
that sorts everything anew, as NumPy does it best: the compiled loops of `gbnn.merge` have to beat these. At
the end, the most memory that a rewiring of `--memory` edges takes beside the weights.
"""

from __future__ import annotations

import argparse
import tracemalloc
from typing import Any

import numpy as np
from timing import alternate

from gbnn import topology, training
from gbnn.edges import Change, Edges
from gbnn.layers import Linear, zeros
from gbnn.sampling import distinct_edges
from gbnn.training.loop import values

Array = np.ndarray[Any, Any]


def rebuilt(edges: Edges, drop: Array, sources: Array, targets: Array) -> tuple[Edges, Change]:
    """Do what `Edges.rewired` does, by sorting all edges."""
    kept = np.delete(np.arange(edges.nnz), drop)
    after, order = Edges.from_coo(
        np.append(edges.sources[kept], sources), np.append(edges.targets[kept], targets), edges.shape
    )
    return after, Change(np.append(kept, np.full(sources.size, -1))[order], edges.nnz)


def turned(edges: Edges) -> tuple[Array, ...]:
    """Do what `Edges.by_target` does, by sorting all edges."""
    sources, targets = edges.sources, edges.targets
    order = np.argsort(targets * edges.shape[0] + sources)
    majors = targets[order]
    begin = np.flatnonzero(np.diff(majors, prepend=-1))
    return majors[begin], np.append(begin, edges.nnz), sources[order], order


def located(edges: Edges, keys: Array, sources: Array, targets: Array) -> Array:
    """Do what `Edges.find` does, given all edges' sorted keys."""
    asked = sources * edges.shape[1] + targets
    place = np.minimum(np.searchsorted(keys, asked), edges.nnz - 1)
    return np.where(keys[place] == asked, place, -1)


def carried(change: Change, array: Array) -> Array:
    """Do what `Change.carry` does, by masks."""
    result, old = np.empty(change.origin.size, dtype=array.dtype), change.origin >= 0
    result[old] = array[change.origin[old]]
    result[~old] = 0
    return result


def memory(edges: int, share: float) -> None:
    """Print the most memory a rewiring takes, as a multiple of the weights and their view by target."""
    width = 200_000
    layer = Linear.random(width, width, nnz=edges, bias=False, seed=0)
    weights, rng = layer.weights, np.random.default_rng(0)
    weights.by_target  # noqa: B018 (made for products)
    held = weights.nbytes + sum(a.nbytes for a in weights.edges.by_target)
    held += weights.edges.order.nbytes + weights.values_by_target.nbytes
    drop = rng.choice(edges, int(share * edges), replace=False)
    sources, targets = distinct_edges(rng, weights.shape, drop.size, weights.edges)
    tracemalloc.start()
    weights.rewire(drop, sources, targets)
    rewire = tracemalloc.get_traced_memory()[1]
    weights.by_target  # noqa: B018
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"\n{width:,} x {width:,}, {edges:,} edges: weights and views {held / 2**20:.1f} MiB;", end=" ")
    print(f"rewiring takes at most {rewire / 2**20:.1f} MiB more, {peak / 2**20:.1f} with the new views")


def main() -> None:
    """Print milliseconds and steps for each part, then memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--density", type=float, default=0.01)
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--share", type=float, default=0.3)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--memory", type=int, default=1_000_000)
    given = options.parse_args()
    n, batch, rng = given.width, given.batch, np.random.default_rng(0)
    x = np.asfortranarray(rng.standard_normal((batch, n), dtype=np.float32))
    dy = np.asfortranarray(rng.standard_normal((batch, n), dtype=np.float32))
    layer = Linear.random(n, n, density=given.density, bias=False, seed=0)
    optimizer = training.adam(1e-3)
    slots = optimizer.start(values(layer))

    def step() -> None:
        _, pullback = layer.forward(x, training=True)
        _, gradients = pullback(dy)
        layer.weights.add(optimizer.update(gradients, slots, values(layer), 0)["weights"])

    def rewire(recipe: topology.Rewiring) -> None:
        places = topology.sites(layer.parameters(), None, slots)
        recipe.apply(places, topology.Clock(0), rng)
        layer.weights.by_target, layer.weights.by_source  # noqa: B018

    # The parts, on a copy: edges and drawn ones that stay the same.
    weights = layer.weights.astype(np.float32)
    edges, size = weights.edges, weights.shape
    site = topology.Site("weights", weights)
    drop = topology.set_magnitude(site, given.share, rng)
    sources, targets = distinct_edges(rng, size, drop.size, edges, ordered=True)
    shuffled = rng.permutation(drop.size)
    keys = edges.sources * n + edges.targets
    after, change = rebuilt(edges, drop, sources, targets)
    grown = sources[shuffled], targets[shuffled]
    for one, other in zip(edges.rewired(drop, *grown)[0].by_source, after.by_source, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip((*after.by_target, after.order), turned(after), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(edges.find(*grown), located(edges, keys, *grown))
    np.testing.assert_array_equal(change.carry(weights.values), carried(change, weights.values))

    def by_target() -> None:
        after.__dict__.pop("_turned", None)
        after.by_target  # noqa: B018

    set_, silent = topology.set_(given.share), topology.set_(given.share, start=zeros)
    times = alternate(
        {
            "training step": step,
            "SET, and views anew": lambda: rewire(set_),
            "SET, new edges at 0": lambda: rewire(silent),
            "prune": lambda: topology.set_magnitude(site, given.share, rng),
            "grow: draw in order": lambda: distinct_edges(rng, size, drop.size, edges, ordered=True),
            "grow: draw": lambda: distinct_edges(rng, size, drop.size, edges),
            "find, asked in order": lambda: edges.find(sources, targets),
            "find": lambda: edges.find(*grown),
            "find, by NumPy": lambda: located(edges, keys, *grown),
            "Edges.rewired, in order": lambda: edges.rewired(drop, sources, targets),
            "Edges.rewired": lambda: edges.rewired(drop, *grown),
            "Edges.rewired, by NumPy": lambda: rebuilt(edges, drop, *grown),
            "carry one array": lambda: change.carry(weights.values),
            "carry, by masks": lambda: carried(change, weights.values),
            "Edges.by_target": by_target,
            "Edges.by_target, by NumPy": lambda: turned(after),
            "fans": after.fans,
        },
        given.rounds,
    )
    print(f"{n} x {n}, {layer.nnz:,} edges, {drop.size:,} of them move; batch {batch}, float32, Adam")
    for name, seconds in times.items():
        print(f"{name:28s} {1e3 * seconds:8.2f} ms  {seconds / times['training step']:6.2f} steps")
    if given.memory:
        memory(given.memory, given.share)


if __name__ == "__main__":
    main()
