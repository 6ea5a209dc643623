"""LeNet-300-100 at 90, 95, 98 and 99 % sparse: the table of sparse momentum (Dettmers & Zettlemoyer, 2019).

    python benchmarks/reproduce/lenet.py --output lenet.jsonl --methods set sparse-momentum dsr --seeds 0 1 2
    python benchmarks/reproduce/table.py lenet.jsonl

What the authors' code does, and so does this: the first 54,000 training images (the rest is for validation),
standardised; all three layers sparse at one density; torch's initial values for a full layer, whatever the
sparsity; ReLU, no normalisation; batch 100, SGD with Nesterov momentum 0.9, weight decay 5e-4 on everything;
learning rate 0.1, a tenth of it from step 25,000 of 54,000 and again from step 50,000; test accuracy after
the last epoch. The source: TimDettmers/sparse_learning, mnist_cifar/main.py, sparselearning/models.py.

The columns of DSR and DEEP-R are the DSR authors' own (IntelAI/dynamic-reparameterization), whose network has
batch normalisation after every layer, the last included: `--normalize batch`. SET's own allocation is in
proportion to in + out: `--allocation erdos_renyi`. (At 99 %, equal densities leave the last layer ten edges.)
"""

from __future__ import annotations

import argparse
import math
from itertools import pairwise, product

import numpy as np
from data import load
from methods import LENET
from runs import Row, main, options, trained

from gbnn import engine, training
from gbnn.layers import BatchNorm, Chain, Dense, Layer, Linear, Relu, he, uniform
from gbnn.topology import allocate

WIDTHS = (784, 300, 100, 10)
BATCH = 100


ALLOCATIONS = {"uniform": allocate.uniform, "erdos_renyi": allocate.erdos_renyi}


def network(key: Row) -> Chain:
    """Return the network of a run.

    Its start: "full" takes torch's initial values of a full layer, "own" He's by each neuron's own fan-in.
    """
    rng = np.random.default_rng(key["seed"])
    start, bias = key["start"], key["normalize"] is None
    shapes = list(pairwise(WIDTHS))
    total = round((1 - key["sparsity"]) * sum(math.prod(shape) for shape in shapes))
    counts = ALLOCATIONS[key["allocation"]](shapes, total)
    made: list[Layer] = []
    for (rows, columns), count in zip(shapes, counts, strict=True):
        bound = 1 / math.sqrt(rows)
        init = uniform(-bound, bound) if start == "full" else he
        if count == rows * columns:
            layer: Linear | Dense = Dense.random(rows, columns, init=init, bias=bias, seed=rng)
        else:
            layer = Linear.random(rows, columns, nnz=count, init=init, bias=bias, seed=rng)
        if start == "full" and layer.bias is not None:
            layer.bias[:] = rng.uniform(-bound, bound, columns)
        made += [layer, Relu()] if bias else [layer, BatchNorm(columns), Relu()]
    return Chain(*made[:-1])


def one(given: argparse.Namespace, key: Row) -> Row:
    """Do one run."""
    engine.set_threads(given.threads)
    split = load(key["data"], given.mnist)
    rows = slice(key["rows"] or 54_000)
    split.x, split.y = split.x[rows], split.y[rows]
    steps = math.ceil(len(split.x) / BATCH)
    whole = key["epochs"] * steps
    falls = [max(1, round(whole * share)) for share in (25_000 / 54_000, 50_000 / 54_000)]
    rate = training.schedules.piecewise([0.1, 0.01, 0.001], falls)
    optimizer = training.sgd(rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    model = network(key)
    return trained(model, split, LENET[key["method"]](steps, rate), optimizer, key, BATCH)


if __name__ == "__main__":
    parser = options(__doc__, LENET, ["static", "set", "sparse-momentum", "dsr"])
    parser.add_argument("--sparsities", type=float, nargs="+", default=[0.9, 0.95, 0.98, 0.99])
    parser.add_argument("--start", choices=["full", "own"], default="full", help="initial values")
    parser.add_argument("--allocation", choices=list(ALLOCATIONS), default="uniform")
    parser.add_argument("--normalize", choices=["batch"], help="default: nothing")
    given = parser.parse_args()
    grid = [
        {
            "script": "lenet",
            "data": data,
            "method": method,
            "sparsity": 0.0 if method == "dense" else sparsity,
            "epochs": given.epochs,
            "rows": given.rows,
            "seed": seed,
            "start": given.start,
            "allocation": given.allocation,
            "normalize": given.normalize,
        }
        for seed, data, sparsity, method in product(given.seeds, given.data, given.sparsities, given.methods)
        if method != "dense" or sparsity == given.sparsities[0]
    ]
    main(given, grid, one)
