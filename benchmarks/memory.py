"""Peak bytes of a training step of a 100,000 x 100,000 layer with 1,000,000 edges, batch 32, Adam.

python benchmarks/memory.py [--size 100000] [--nnz 1000000] [--batch 32] [--steps 5]

Counted by tracemalloc, which sees NumPy's memory and GraphBLAS's alike.
tests/test_memory.py holds the bound.
"""

from __future__ import annotations

import argparse
import tracemalloc

import numpy as np

from gbnn import layers, training
from gbnn.training import State


def main() -> None:
    """Print the peak of each step against the bytes of weights, optimizer state and activations."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--size", type=int, default=100_000)
    options.add_argument("--nnz", type=int, default=1_000_000)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--steps", type=int, default=5)
    given = options.parse_args()
    rng = np.random.default_rng(0)
    tracemalloc.start()
    layer = layers.Linear.random(given.size, given.size, nnz=given.nnz, bias=False, seed=0)
    x = np.asfortranarray(rng.standard_normal((given.batch, given.size), dtype=np.float32))
    target = rng.integers(0, given.size, given.batch)
    optimizer = training.adam(1e-3)
    state = State.start(layer, optimizer)
    print("step  peak MB  share of weights + state + activations")
    batches = ((x, target) for _ in range(given.steps))
    tracemalloc.reset_peak()
    for step in training.train(layer, batches, optimizer=optimizer, state=state):
        peak = tracemalloc.get_traced_memory()[1]
        slots = sum(a.nbytes for s in state.slots.values() for a in s.values())
        kept = layer.nbytes + slots + 3 * x.nbytes  # x, y and dy
        print(f"{step.index:4d}  {peak / 1e6:7.1f}  {peak / kept:.2f}")
        tracemalloc.reset_peak()
    dense = given.size**2 * 4
    print(f"(a dense weight matrix alone: {dense / 1e6:,.0f} MB)")


if __name__ == "__main__":
    main()
