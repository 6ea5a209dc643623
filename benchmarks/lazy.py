"""A lazy step beside an eager one: 1,000,000 edges, of which a batch touches 10,000.

    python benchmarks/lazy.py [edges] [touched]

Both optimizers are given the same gradients on touched edges, in turn, in one run; a step is the update alone
(`training.lazy.update`), without forward and backward. The median of 200 steps; lazily these include what the
touched edges missed, up to 300 steps. Then the time to bring all edges up to date, which a training has to
spend every 1024 steps (16 where steps are made again), and the largest difference of the weights (float32).
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.semirings import TouchedGradient
from gbnn.training import Transform, adagrad, adam, adamw, rmsprop, sgd
from gbnn.training.lazy import update
from gbnn.training.state import State
from gbnn.weights import Weights

WARM, STEPS = 100, 200
OPTIMIZERS = {
    "sgd": sgd(0.1),
    "sgd, momentum": sgd(0.1, momentum=0.9),
    "sgd, momentum, decay": sgd(0.1, momentum=0.9, weight_decay=1e-4),
    "adam": adam(1e-3),
    "adamw": adamw(1e-3),
    "adam, decay": adam(1e-3, weight_decay=1e-4),
    "rmsprop": rmsprop(1e-3),
    "adagrad": adagrad(1e-2),
}


def timed(function: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def run(name: str, nnz: int, touched: int) -> str:
    """Return an optimizer's row of the table."""
    rng = np.random.default_rng(0)
    width = 2**20
    places = np.unique(rng.integers(0, width**2, nnz))
    start = rng.standard_normal(places.size)
    sides: list[tuple[Weights, Transform, State, list[float]]] = []
    for choice in (None, False):
        weights = Weights.from_coo(places // width, places % width, start, (width, width))
        optimizer = OPTIMIZERS[name].lazily(choice)
        sides.append((weights, optimizer, State(optimizer.start({"w": weights.values}), 0, rng), []))
    for step in range(WARM + STEPS):
        at = np.unique(rng.integers(0, places.size, touched))
        numbers = rng.standard_normal(at.size).astype(np.float32)
        for weights, optimizer, state, times in sides:
            gradient = TouchedGradient(at, numbers, places.size)

            def one(w: Any = weights, o: Any = optimizer, s: Any = state, g: Any = gradient) -> None:
                update({"w": w}, {"w": g}, o, s)

            times.append(timed(one))
            state.step = step + 1
    lazy, eager = (1e3 * statistics.median(times[WARM:]) for *_, times in sides)
    settling = 1e3 * timed(sides[0][0].settle)
    error = float(np.abs(sides[0][0].values - sides[1][0].values).max())
    return f"{name:22s} {lazy:9.3f} {eager:9.3f} {eager / lazy:8.1f} {settling:12.1f} {error:12.1e}"


def main() -> None:
    """Print the table."""
    given = [int(float(argument)) for argument in sys.argv[1:3]]
    nnz, touched = [*given, *[1_000_000, 10_000][len(given) :]]
    print(f"{nnz} edges, {touched} touched a step; milliseconds, median of {STEPS} steps")
    print(f"{'':22s} {'lazy':>9s} {'eager':>9s} {'ratio':>8s} {'settle all':>12s} {'difference':>12s}")
    for name in OPTIMIZERS:
        print(run(name, nnz, touched), flush=True)


if __name__ == "__main__":
    main()
