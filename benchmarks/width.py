"""One training step of a layer with sparse activations, at a fixed number of edges and ever larger widths.

    python benchmarks/width.py [--edges 1000000] [--batch 128] [--active 100] [--winners 100]

A batch of sparse rows goes through width x width neurons with that many random edges and on to the strongest
outputs of each row (k-winners); their gradient comes back, and Adam updates the edges it touches. All widths
in one process, taking turns. Active inputs are drawn among neurons that have edges: at 2**40 a blind choice
would find none.

Memory is counted by tracemalloc: `layer` are the edges and values, `state` the optimizer's slots, `kept` what
is kept beside them from step to step, and `step` the most that one step takes on top.
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import alternate

from gbnn import training
from gbnn.layers import Chain, KWinners, Linear
from gbnn.losses import Loss
from gbnn.rows import SparseRows

WIDTHS = (10**4, 10**5, 10**6, 10**7, 2**40)


def batch_of(layer: Linear, rows: int, active: int, rng: np.random.Generator) -> SparseRows:
    """Return rows of `active` inputs each, among those that have edges."""
    ids = layer.weights.edges.by_source.ids
    columns = [np.sort(rng.choice(ids, active, replace=False)) for _ in range(rows)]
    values = rng.random(rows * active, dtype=np.float32)
    starts = np.arange(rows + 1) * active
    return SparseRows(starts, np.concatenate(columns), values, (rows, layer.in_features))


class Given(Loss):
    """A loss with a gradient of 1 at every active output: the step costs what the layer costs."""

    name = "given"

    def __call__(self, y: Any, target: Any) -> Any:
        """Return 0 and a gradient of ones."""
        return 0.0, lambda: y.with_values(np.ones_like(y.values))

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Any:
        return target

    def _compute(self, y: Any, target: Any) -> Any:
        raise NotImplementedError

    _predict = _metrics = _compute  # type: ignore[assignment]


class Side:
    """A layer of one width in training, one step at a call."""

    def __init__(self, width: int, given: argparse.Namespace) -> None:
        rng = np.random.default_rng(0)
        tracemalloc.start()
        layer = Linear.random(width, width, nnz=given.edges, bias=False, seed=1)
        gc.collect()
        self.layer = tracemalloc.get_traced_memory()[0]
        batches = [(batch_of(layer, given.batch, given.active, rng), 0) for _ in range(given.batches)]
        drawn = tracemalloc.get_traced_memory()[0] - self.layer
        model = Chain(layer, KWinners(given.winners))
        optimizer = training.adam(1e-3)
        self.state = training.State.start(model, optimizer)
        before = tracemalloc.get_traced_memory()[0]
        self.state_bytes = before - self.layer - drawn
        options: dict[str, Any] = {
            "loss": Given(),
            "optimizer": optimizer,
            "state": self.state,
            "epochs": 10**6,
        }
        self.steps = training.train(model, Repeated(batches), **options)
        for _ in range(3):
            self()
        self.kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        self()
        self.step = tracemalloc.get_traced_memory()[1] - held
        tracemalloc.stop()

    def __call__(self) -> None:
        """Train one step."""
        next(self.steps)


class Repeated(list[Any]):
    """Batches that are the same in every epoch."""


def main() -> None:
    """Print a row for each width."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--edges", type=int, default=10**6)
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--active", type=int, default=100)
    options.add_argument("--winners", type=int, default=100)
    options.add_argument("--batches", type=int, default=20)
    options.add_argument("--rounds", type=int, default=21)
    given = options.parse_args()
    sides = {str(width): Side(width, given) for width in WIDTHS}
    print(f"{given.edges:,} edges, {given.active} active inputs, batch {given.batch}, Adam, float32")
    times = alternate(dict[str, Callable[[], object]](sides), given.rounds)
    base, at = sides[str(10**5)], times[str(10**5)]
    print(
        f"{'width':>15s} {'ms':>8s} {'ratio':>6s} {'layer':>7s} {'state':>7s} {'kept':>7s} "
        f"{'step':>7s} MB  all, ratio"
    )
    for name, side in sides.items():
        parts = side.layer, side.state_bytes, side.kept, side.step
        total = sum(parts) / (base.layer + base.state_bytes + base.kept + base.step)
        sizes = " ".join(f"{part / 1e6:7.1f}" for part in parts)
        print(f"{int(name):15,} {1e3 * times[name]:8.2f} {times[name] / at:6.2f} {sizes}     {total:6.2f}")


if __name__ == "__main__":
    main()
