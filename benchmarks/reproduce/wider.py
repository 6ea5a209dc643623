"""784-n-10 at the same number of edges and ever larger n: after Golubeva et al. (ICLR 2021).

    python benchmarks/reproduce/wider.py --output wider.jsonl --data fashion-mnist --seeds 0 1 2
    python benchmarks/reproduce/wider.py --output wider.jsonl --plot wider.png

"Are wider nets better given the same number of parameters?" (arXiv:2010.14495). The number of edges is that
of a full network with 128 hidden neurons, 101,632. They are divided between the two layers in the proportion
of in + out (Erdős-Rényi) and placed at random; ReLU, cross entropy, Adam with one cycle to 2e-3, batch 128.
`static` leaves the edges where they are, `set` and `rigl` move them.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from itertools import product
from pathlib import Path

from data import load
from runs import Row, main, options, trained

from gbnn import engine, models, topology, training
from gbnn.layers import Chain
from gbnn.topology import Rewirer

FULL = 128
EDGES = 784 * FULL + FULL * 10
WIDTHS = (128, 1_280, 12_800, 128_000)
BATCH = 128


def rewiring(method: str) -> Rewirer | None:
    """Return how edges move, by the recipe's own schedule."""
    return {"static": None, "set": topology.set_(), "rigl": topology.rigl()}[method]


def network(width: int, seed: int) -> Chain:
    """Return the network of a run."""
    return models.mlp([784, width, 10], nnz=EDGES, allocation="erdos_renyi", seed=seed)


def one(given: argparse.Namespace, key: Row) -> Row:
    """Do one run."""
    engine.set_threads(given.threads)
    split = load(key["data"], given.mnist)
    split.x, split.y = split.x[: key["rows"]], split.y[: key["rows"]]
    steps = -(-len(split.x) // BATCH) * key["epochs"]
    optimizer = training.adam(training.schedules.one_cycle(2e-3, steps))
    return trained(network(key["width"], key["seed"]), split, rewiring(key["method"]), optimizer, key, BATCH)


def show(path: Path, plot: Path | None) -> None:
    """Print mean and spread of each width, and draw them."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[row["method"], row["width"]].append(100 * row["accuracy"])
    for (method, width), values in sorted(found.items()):
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(f"{method:8s} {width:8,} {statistics.mean(values):6.2f} ± {spread:.2f}  ({len(values)} seeds)")
    if plot is not None:
        import matplotlib.pyplot as plt

        for method in sorted({method for method, _ in found}):
            widths = sorted(width for name, width in found if name == method)
            means = [statistics.mean(found[method, width]) for width in widths]
            plt.plot(widths, means, marker="o", label=method)
        plt.xscale("log")
        plt.xlabel(f"hidden neurons, at {EDGES:,} edges")
        plt.ylabel("test accuracy, per cent")
        plt.legend()
        plt.savefig(plot, dpi=120)


if __name__ == "__main__":
    parser = options(__doc__, ["static", "set", "rigl"], ["static", "set", "rigl"])
    parser.add_argument("--widths", type=int, nargs="+", default=list(WIDTHS))
    parser.add_argument("--plot", type=Path, help="draw what the output holds, and run nothing")
    given = parser.parse_args()
    if given.plot is not None:
        show(given.output, given.plot)
        raise SystemExit
    grid = [
        {
            "script": "wider",
            "data": data,
            "method": "static" if width == FULL else method,
            "width": width,
            "epochs": given.epochs,
            "rows": given.rows,
            "seed": seed,
        }
        for width, seed, data, method in product(given.widths, given.seeds, given.data, given.methods)
        if width != FULL or method == "static"
    ]
    main(given, grid, one)
    if given.one is None:
        show(given.output, None)
