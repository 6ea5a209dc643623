"""Exact growth into each neuron (SRigL) against the same by NumPy, and against one training step.

    python benchmarks/fan_in.py [--width 4096] [--density 0.01] [--batch 128] [--cpu] [--threads 1]

`blas` is the product alone, `numpy` finds by partition what `strongest_into` finds, but lets the rounding of
BLAS choose. Runs alternate: medians. `--cpu` counts the processor's seconds: better on a busy machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from unittest import mock

import numpy as np
from timing import alternate

from gbnn import engine
from gbnn.edges import Edges
from gbnn.layers import Linear
from gbnn.sampling import distinct_edges
from gbnn.semirings import Probe
from gbnn.topology.grow import strongest_into


def by_partition(probe: Probe, present: Edges, count: int) -> int:
    """Find the `count` strongest absent edges into each target as dense code does; return how many."""
    found = 0
    width = max(1, 2**20 // present.shape[0])
    for start in range(0, present.shape[1], width):
        size = np.abs(probe.block(start, start + width))
        inside = (present.targets >= start) & (present.targets < start + width)
        size[present.sources[inside], present.targets[inside] - start] = -1
        found += np.argpartition(size, -count, axis=0)[-count:].size
    return found


def main() -> None:
    """Print milliseconds and steps of each side, for dense inputs, those of ReLU and unequal norms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", action="store_true", help="count processor time")
    given = parser.parse_args()
    engine.set_threads(given.threads)
    n, rng = given.width, np.random.default_rng(0)
    layer = Linear.random(n, n, density=given.density, bias=False, seed=0)
    present, _ = Edges.from_coo(*distinct_edges(rng, (n, n), int(0.7 * layer.nnz)), (n, n))
    present.by_target  # noqa: B018  a layer that trains has it
    count = max(1, int(0.3 * layer.nnz / n))
    targets, counts = np.arange(n), np.full(n, count)
    for case in ("dense", "relu", "skewed"):
        x, dy = (np.asfortranarray(rng.standard_normal((given.batch, n)), np.float32) for _ in range(2))
        if case == "relu":
            np.maximum(x, 0, out=x)
            dy *= rng.random(dy.shape) < 0.5
        elif case == "skewed":
            x *= np.exp(rng.standard_normal(n)).astype(np.float32)
            dy *= np.exp(rng.standard_normal(n)).astype(np.float32)
        probe = Probe(x, dy)

        def step(x: np.ndarray = x, dy: np.ndarray = dy) -> None:
            _, pullback = layer.forward(x, training=True)
            np.asarray(pullback(dy)[1]["weights"])

        sides: dict[str, Callable[[], object]] = {
            "forward and gradients": step,
            "blas": partial(probe.block, 0, n),
            "strongest_into": partial(strongest_into, probe, present, targets, counts),
            "numpy": partial(by_partition, probe, present, count),
        }
        clock = time.process_time if given.cpu else time.perf_counter
        with mock.patch("time.perf_counter", clock):
            times = alternate(sides, given.rounds)
        for name, seconds in times.items():
            steps = seconds / times["forward and gradients"]
            print(f"{n} {case:7s} {name:22s} {1e3 * seconds:8.2f} ms {steps:7.2f} steps", flush=True)


if __name__ == "__main__":
    main()
