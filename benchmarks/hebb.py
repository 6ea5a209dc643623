"""Cannistraci-Hebb growth: seconds and memory of one search, and against the same algebra in GraphBLAS.

python benchmarks/hebb.py [--rounds 3] [--fraction 0.3]

Prints wall and processor seconds (all threads): on a busy machine only the second says something.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from statistics import median

import numpy as np

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.topology.grow.hebb_algebra import hebb_scores
from gbnn.topology.grow.hebb_search import strongest_links

LAYERS = ((1568, 24_586), (4096, 167_772), (20_000, 400_000))


def _seconds(run: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the medians of wall and processor seconds."""
    wall, busy = [], []
    for _ in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    return median(wall), median(busy)


def main() -> None:
    """Print one line for each layer and way."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--fraction", type=float, default=0.3)
    given = options.parse_args()
    warm, _ = Edges.from_coo([0, 1, 1, 2], [0, 0, 1, 1], (3, 3))
    strongest_links(warm, 1)
    for width, nnz in LAYERS:
        shape = (width, width)
        edges, _ = Edges.from_coo(*distinct_edges(np.random.default_rng(0), shape, nnz), shape)
        count = int(given.fraction * nnz)
        print(f"{width} x {width}, {nnz:,} edges, {count:,} to grow", flush=True)
        ways: dict[str, Callable[[], object]] = {
            "CH3-L3": lambda e=edges, n=count: strongest_links(e, n),  # type: ignore[misc]
            "CH2-L3": lambda e=edges, n=count: strongest_links(e, n, internal=True),  # type: ignore[misc]
            "CH2-L3, sampled": lambda e=edges, n=count: strongest_links(e, n, internal=True, seed=1),  # type: ignore[misc]
        }
        for name, run in ways.items():
            wall, busy = _seconds(run, given.rounds)
            print(f"  {name:22s} {wall:7.2f} s wall {busy:7.2f} s processor", flush=True)
        tracemalloc.start()
        strongest_links(edges, count)
        print(f"  {'memory at most':22s} {tracemalloc.get_traced_memory()[1] / 2**20:7.0f} MiB")
        tracemalloc.stop()
        if width > 5000:  # some gigabytes of scores
            continue
        wall, busy = _seconds(lambda e=edges: hebb_scores(e), given.rounds)  # type: ignore[misc]
        print(f"  {'GraphBLAS, scores only':22s} {wall:7.2f} s wall {busy:7.2f} s processor", flush=True)


if __name__ == "__main__":
    main()
