"""Pruning at initialisation on Fashion-MNIST, 784-300-100-10: edges per layer, cost, accuracy.

    python benchmarks/at_init.py [--start 0.2] [--compressions 10 100 1000] [--epochs 3] [--seed 0]

A sparse model of density `start` is scored and cut to its nnz / compression. "random" is a fresh Erdos-Renyi
graph of as many edges; "as synflow" a fresh graph with the edges per layer that SynFlow leaves. The cost of
the scores is given in training steps (batch 128) of the model that is scored.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gbnn import data, layers, losses, models, training
from gbnn.topology import allocate, at_init

Pair = tuple[Any, Any]

WIDTHS = [784, 300, 100, 10]
SAMPLES = 1000  # to score by: a hundred a class


def main() -> None:
    """Print a row a compression and method."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--start", type=float, default=0.2)
    options.add_argument("--compressions", type=float, nargs="+", default=[10, 100, 1000])
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    images = data.fashion_mnist()
    train, test = images.train, images.test
    rng = np.random.default_rng(given.seed)
    picked = rng.permutation(len(train[0]))[:SAMPLES]
    batch = [(train[0][picked], train[1][picked])]
    make = partial(models.mlp, WIDTHS, seed=given.seed)
    dense = partial(make, density=given.start, allocation=allocate.uniform)
    step = _step_seconds(dense(), train)
    print(f"{dense().nnz:,} edges at the start; one training step takes {1e3 * step:.2f} ms")
    print("compression  method      edges per layer        seconds  in steps  accuracy", flush=True)
    for compression in given.compressions:
        nnz = round(dense().nnz / compression)
        scores: dict[str, Callable[[layers.Layer], at_init.Scores]] = {
            "magnitude": at_init.magnitude,
            "snip": partial(at_init.snip, batches=batch, loss=losses.cross_entropy),
            "grasp": partial(at_init.grasp, batches=batch, loss=losses.cross_entropy),
            "synflow": partial(at_init.synflow, nnz=nnz),
        }
        left: list[int] = []
        for method in ("random", *scores, "as synflow"):
            start = time.perf_counter()
            if method in scores:
                model = dense()
                at_init.keep_strongest(model, scores[method](model), nnz)
            elif method == "random":
                model = make(nnz=nnz, allocation=allocate.erdos_renyi)
            else:
                model = make(nnz=left)
            seconds = time.perf_counter() - start
            left = [layer.own_nnz for layer in model if isinstance(layer, layers.Linear | layers.Dense)]
            accuracy = _accuracy(model, train, test, given.epochs, given.seed)
            cost = f"{seconds:7.3f}  {seconds / step:8.1f}" if method in scores else " " * 17
            print(f"{compression:11g}  {method:10s}  {left!s:21s}  {cost}  {accuracy:8.4f}", flush=True)


def _step_seconds(model: layers.Layer, train: Pair) -> float:
    """Return the median time of a training step."""
    taken, start = [], 0.0
    for index, _ in enumerate(training.train(model, data.batches(*train, batch_size=128))):
        taken.append(time.perf_counter() - start)
        start = time.perf_counter()
        if index == 60:
            break
    return float(np.median(taken[10:]))


def _accuracy(model: layers.Layer, train: Pair, test: Pair, epochs: int, seed: int) -> float:
    training.fit(model, train, epochs=epochs, optimizer=training.adam(2e-3), seed=seed, progress=False)
    return float(training.evaluate(model, test)["accuracy"])


if __name__ == "__main__":
    main()
