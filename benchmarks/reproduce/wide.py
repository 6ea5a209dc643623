"""784-1568-1568-1568-10, 99 % sparse: the table of CHTs (Zhang et al., 2025, arXiv:2501.19107).

    python benchmarks/reproduce/wide.py --output wide.jsonl --data fashion-mnist --methods set rigl cht chts
    python benchmarks/reproduce/table.py wide.jsonl

What the authors' code does, and so does this: all 60,000 training images, standardised; three sparse layers
of one density and a full last one; ReLU, no normalisation, no dropout; batch 32, SGD with momentum 0.9,
weight decay 5e-4 on everything; the learning rate of each epoch falls in a straight line from 0.025 to 2.5e-4
over 90 % of the epochs and stays. The source: biomedical-cybernetics/Cannistraci-Hebb-training,
mlp_and_cnn/run.py, model.py, dst_scheduler.py, load_data.py.

What differs between their methods is an option here. `--start published` draws weights by the width of the
layer for SET and RigL, and by the sparse fan-in for CHT and CHTs, as their commands do; `--start own` takes
each neuron's own fan-in for all.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
from data import Split, load
from methods import WIDE
from runs import Row, main, options, trained

from gbnn import engine, training
from gbnn.layers import Chain, Dense, Layer, Linear, Relu, he, normal
from gbnn.topology import wire

WIDTHS = (784, 1568, 1568, 1568, 10)
BATCH = 32
OWN_START = ("cht", "chts", "chts-em-s")  # methods whose published command draws weights by the sparse fan-in

Array = np.ndarray[Any, Any]


def random(split: Split) -> Callable[..., Any]:
    """Return the maker of uniformly random graphs."""
    return wire.random


def small_world(split: Split) -> Callable[..., Any]:
    """Return the maker of rings of which nothing is rewired (the strongest locality)."""
    return wire.small_world(0.0)


def correlated(split: Split) -> Callable[..., Any]:
    """Return the maker that wires the first layer by the correlations of the inputs, others at random."""
    first = wire.correlated(split.x)

    def maker(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Any:
        return (first if shape[0] == split.x.shape[1] else wire.random)(rng, shape, nnz)

    return maker


WIRES = {"random": random, "small-world": small_world, "correlated": correlated}


def network(key: Row, split: Split) -> Chain:
    """Return the network of a run."""
    rng = np.random.default_rng(key["seed"])
    by_fan_in = key["start"] == "own" or key["method"] in OWN_START
    maker = WIRES[key["wire"]](split)
    made: list[Layer] = []
    for rows, columns in pairwise(WIDTHS[:-1]):
        init = he if by_fan_in else normal(math.sqrt(2 / rows))
        if key["sparsity"] == 0:
            layer: Linear | Dense = Dense.random(rows, columns, init=he, seed=rng)
        else:
            count = round((1 - key["sparsity"]) * rows * columns)
            layer = Linear.from_edges(maker(rng, (rows, columns), count), init=init, seed=rng)
        made += [_with_bias(layer, rng), Relu()]
    bound = 1 / math.sqrt(WIDTHS[-2])
    head = Dense(rng.uniform(-bound, bound, WIDTHS[-2:]).astype(np.float32), np.zeros(WIDTHS[-1]))
    return Chain(*made, _with_bias(head, rng))


def _with_bias(layer: Linear | Dense, rng: np.random.Generator) -> Linear | Dense:
    """Draw the biases as torch does."""
    assert layer.bias is not None
    bound = 1 / math.sqrt(layer.in_features or 1)
    layer.bias[:] = rng.uniform(-bound, bound, layer.bias.size)
    return layer


def falling(epochs: int, steps: int) -> training.Schedule:
    """Return the learning rate: one value an epoch, down to a hundredth after 90 % of the epochs."""
    falls = max(1, int(0.9 * epochs))
    return lambda step: 0.025 * (1 - 0.99 * min(step // steps, falls) / falls)


def one(given: argparse.Namespace, key: Row) -> Row:
    """Do one run."""
    engine.set_threads(given.threads)
    split = load(key["data"], given.mnist)
    split.x, split.y = split.x[: key["rows"]], split.y[: key["rows"]]
    steps = math.ceil(len(split.x) / BATCH)
    rate = falling(key["epochs"], steps)
    optimizer = training.sgd(rate, momentum=0.9, weight_decay=5e-4)
    return trained(network(key, split), split, WIDE[key["method"]](steps, rate), optimizer, key, BATCH)


if __name__ == "__main__":
    parser = options(__doc__, WIDE, ["static", "set", "rigl", "cht", "chts"])
    parser.add_argument("--sparsity", type=float, default=0.99)
    parser.add_argument("--start", choices=["published", "own"], default="published", help="initial values")
    parser.add_argument("--wire", choices=list(WIRES), default="random", help="initial graph")
    given = parser.parse_args()
    grid = [
        {
            "script": "wide",
            "data": data,
            "method": method,
            "sparsity": 0.0 if method == "dense" else given.sparsity,
            "epochs": given.epochs,
            "rows": given.rows,
            "seed": seed,
            "start": given.start,
            "wire": given.wire,
        }
        for seed, data, method in product(given.seeds, given.data, given.methods)
    ]
    main(given, grid, one)
