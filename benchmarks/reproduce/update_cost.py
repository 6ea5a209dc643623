"""What one rewiring costs beside one training step: every recipe at 4096 x 4096, 1 % dense, batch 128.

    python benchmarks/reproduce/update_cost.py [--width 4096] [--density 0.01] [--batch 128] [--threads 2]

A step is forward, both gradients and SGD with momentum. A rewiring is timed together with the step after it,
which builds anew what the graph's change made stale, less the median of a step; runs alternate. Some recipes
also look at every step (to remember gradients, to walk at random): that cost stands in a column of its own.
Peak memory is of traced allocations, NumPy's and GraphBLAS's, during one rewiring. `--cpu` counts the seconds
of the processor instead of those of the clock: with one thread, they tell more on a busy machine.

The first row is what masked code does: a dense gradient, its size, the largest 30 % of the number of edges.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from methods import COSTS

from gbnn import engine, training
from gbnn.errors import GbnnError
from gbnn.layers import Linear, ReserveLinear
from gbnn.topology import Clock, Exchange, Memory, Rewirer, Site, sites
from gbnn.training.loop import values
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Now = Callable[[], float]


class Trial:
    """One layer in training: a step, and a rewiring at a clock that goes on."""

    def __init__(self, width: int, density: float, batch: int, rewiring: Rewirer | None) -> None:
        rng = np.random.default_rng(0)
        # As after a ReLU, and as behind one: about half of each is 0.
        self.x = np.asfortranarray(np.maximum(rng.standard_normal((batch, width), dtype=np.float32), 0))
        self.dy = np.asfortranarray(np.maximum(rng.standard_normal((batch, width), dtype=np.float32), 0))
        self.layer = Linear.random(width, width, density=density, seed=0)
        if isinstance(rewiring, Exchange):  # Top-KAST: half as many edges in reserve
            self.layer = ReserveLinear.of(self.layer, self.layer.nnz // 2)
        self.optimizer = training.sgd(0.1, momentum=0.9)
        self.slots = self.optimizer.start(values(self.layer))
        self.memory: dict[str, Memory] = {}
        self.rewiring = rewiring
        self.rng = np.random.default_rng(1)
        self.index = self.rewired = 0
        self.step()

    def step(self) -> None:
        """Train on the batch."""
        _, pullback = self.layer.forward(self.x, training=True)
        _, self.gradients = pullback(self.dy)
        updates = self.optimizer.update(self.gradients, self.slots, values(self.layer), self.index)
        for name, parameter in self.layer.parameters().items():
            if isinstance(parameter, Weights):
                parameter.add(updates[name])
            else:
                parameter += updates[name]
        self.index += 1

    def watched_step(self) -> None:
        """Train on the batch, with what the recipe does at every step."""
        self.step()
        if self.rewiring is not None and self.rewiring.watches:
            self.rewiring.watch(self.places(), self.clock(), self.rng)

    def rewire(self) -> None:
        """Rewire now."""
        assert self.rewiring is not None
        self.rewiring.apply(self.places(), self.clock(), self.rng)
        self.rewired += 1

    def rewire_and_step(self) -> None:
        """Rewire, and train on the batch."""
        self.rewire()
        self.watched_step()

    def places(self) -> list[Site]:
        """Return the layer as one that is not the last, where some recipes do less."""
        found = sites(self.layer.parameters(), self.gradients, self.slots, self.memory)
        for site in found:
            site.count = 2
        return found

    def clock(self) -> Clock:
        """Return the time: near the beginning of a long training, at the end of an epoch."""
        epoch = 10 + self.rewired
        return Clock(100 * epoch, epoch, 1000, True, 100_000)

    def masked(self) -> Array:
        """Choose the edges as masked code does, through a dense gradient."""
        size = np.abs(self.x.T @ self.dy).ravel()
        count = int(0.3 * self.layer.nnz)
        return np.argpartition(size, size.size - count)[size.size - count :]


def alternate(sides: Mapping[str, Callable[[], object]], rounds: int, now: Now) -> dict[str, float]:
    """Run every side once a round, in turn; return each one's median in seconds. The first round is lost."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds + 1):
        for name, run in sides.items():
            start = now()
            run()
            taken[name].append(now() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


def peak(run: Callable[[], object]) -> float:
    """Return the most memory that a call held beside what there was, in megabytes."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (most - before) / 1e6


def main() -> None:
    """Print a row a recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu", action="store_true", help="count processor time")
    parser.add_argument("--recipes", nargs="+", default=list(COSTS), choices=list(COSTS), metavar="RECIPE")
    given = parser.parse_args()
    engine.set_threads(given.threads)
    sizes = given.width, given.density, given.batch
    trial = Trial(*sizes, None)
    now = time.process_time if given.cpu else time.perf_counter
    size = f"{given.width} x {given.width}, {trial.layer.nnz:,} edges, batch {given.batch}"
    print(f"{size}, {given.threads} threads, {'processor' if given.cpu else 'clock'} time")
    print("| recipe | step, ms | at every step, ms | rewiring, ms | rewiring / step | peak, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    times = alternate({"step": trial.step, "masked": trial.masked}, given.rounds, now)
    show("dense gradient + top-k", times["step"], 0.0, times["masked"], peak(trial.masked))
    for name in given.recipes:
        try:
            cost(name, Trial(*sizes, COSTS[name](100, lambda step: 0.1)), given.rounds, now)
        except (AttributeError, GbnnError) as error:  # a recipe not there, or not for such a layer
            print(f"| {name} | {error} | | | | |", flush=True)


def cost(name: str, trial: Trial, rounds: int, now: Now) -> None:
    """Print the row of one recipe."""
    plain = Trial(trial.x.shape[1], trial.layer.nnz / trial.x.shape[1] ** 2, len(trial.x), None)
    for _ in range(40):  # what is remembered fills up
        trial.watched_step()
    sides = {"step": plain.step, "watched": trial.watched_step, "both": trial.rewire_and_step}
    times = alternate(sides, rounds, now)
    looking = max(0.0, times["watched"] - times["step"]) if trial.rewiring and trial.rewiring.watches else 0.0
    base = times["watched"] if looking else times["step"]
    show(name, times["step"], looking, times["both"] - base, peak(trial.rewire))


def show(name: str, step: float, looking: float, rewiring: float, most: float) -> None:
    """Print a row."""
    watching = f"{1e3 * looking:.2f}" if looking else ""
    cells = f"{1e3 * step:.2f} | {watching} | {1e3 * rewiring:.2f} | {rewiring / step:.2f} | {most:.1f}"
    print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
