"""Exact gradient growth by both routes against a dense gradient and top-k.

Layers of 1 % density grow 0.3 % of all places. ``dense`` is all of x^T dy, masked, and `np.argpartition`:
what masks over dense arrays cost; it is left out where it would take more than --gigabytes.
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import alternate

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.semirings import Probe
from gbnn.topology.grow.strongest import Search, search_absent

Array = np.ndarray[Any, Any]


def made(case: str, batch: int, width: int, rng: np.random.Generator) -> Probe:
    """Make a layer's input and output gradient."""
    x, dy = (np.asfortranarray(rng.standard_normal((batch, width)), np.float32) for _ in range(2))
    if case == "relu":  # inputs are activations, half of them zero; a third of the neurons is dead
        np.maximum(x, 0, out=x)
        x[:, rng.random(width) < 1 / 3] = 0
        dy *= rng.random((batch, width)) < 0.5
    elif case == "skewed":  # log-normal norms, as neurons of trained networks have
        x *= np.exp(rng.standard_normal(width)).astype(np.float32)
        dy *= np.exp(rng.standard_normal(width)).astype(np.float32)
    return Probe(x, dy)


def dense(probe: Probe, present: Edges, count: int) -> Array:
    """Take the strongest from the whole gradient."""
    size = probe.x.T @ probe.dy
    np.abs(size, out=size)
    size[present.sources, present.targets] = -1
    return np.argpartition(size.ravel(), -count)[-count:]


def peak(run: Callable[[], object]) -> float:
    """Return the most that a run allocates, in MB."""
    gc.collect()
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def same(first: Search, second: Search) -> bool:
    """Return whether two searches found the same edges in the same order."""
    return bool((first.sources == second.sources).all() and (first.targets == second.targets).all())


def main() -> None:
    """Print a table, a line for each layer and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[1000, 4096, 10_000, 30_000])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=4, help="what the dense way may take")
    options = parser.parse_args()
    print(f"{'width':>6} {'case':<7} {'way':<7} {'ms':>8} {'MB':>8} {'visited':>8}  chosen")
    for width in options.widths:
        rng = np.random.default_rng(0)
        places = width * width
        edges = distinct_edges(rng, (width, width), places // 100)
        present, _ = Edges.from_coo(*edges, (width, width))
        present.by_target  # noqa: B018  a layer that trains has it
        count = places * 3 // 1000
        for case in ("dense", "relu", "skewed"):
            probe = made(case, options.batch, width, rng)
            found: dict[str, Search] = {}

            def search(name: str, route: Any, probe: Probe = probe, found: Any = found) -> None:
                found[name] = search_absent(probe, present, count, route=route)  # noqa: B023

            sides: dict[str, Callable[[], object]] = {
                "blocks": partial(search, "blocks", "blocks"),
                "bound": partial(search, "bound", "bound"),
                "chosen": partial(search, "chosen", None),
            }
            if 12 * places < options.gigabytes * 1e9:  # float32, and int64 positions of argpartition
                sides["dense"] = partial(dense, probe, present, count)
            seconds = alternate(sides, options.rounds)
            if not (same(found["blocks"], found["bound"]) and same(found["blocks"], found["chosen"])):
                raise SystemExit("the routes differ")
            for name, run in sides.items():
                share = f"{found[name].visited:8.3f}" if name in found else f"{1:8.3f}"
                route = found[name].route if name == "chosen" else ""
                ms = f"{seconds[name] * 1e3:8.1f}"
                print(f"{width:>6} {case:<7} {name:<7} {ms} {peak(run):8.1f} {share}  {route}", flush=True)


if __name__ == "__main__":
    main()
