"""A network over 2**60 hashed features that grows its first layer on demand, against its twins over 2**20.

CLINC150 (Larson et al., 2019): 15,000 sentences, 150 intents, character and word n-grams by hash, TF-IDF.

- ``2^60``: the first layer begins with no edges; those of largest |gradient| over active inputs x outputs are
  grown every few steps, until the budget is reached, and go on taking the place of the weakest.
- ``2^20``: the same settings over 2**20 features, where n-grams share columns.
- ``2^20, random``: what is done without growth: as many random edges for each of the 2**20 features.

Each is trained twice: for the time, and for one epoch to measure memory (`tracemalloc`, which takes time).

    python benchmarks/hashed.py --data ../shared/data/clinc150_full.json.gz
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import resource
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np

from gbnn import data, layers, topology, training
from gbnn.topology import grow, wire
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


def load(path: str) -> dict[str, tuple[list[str], Array]]:
    """Return sentences and class numbers of ``train``, ``val`` and ``test``."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        raw = json.load(file)
    number = {name: k for k, name in enumerate(sorted({intent for _, intent in raw["train"]}))}
    return {
        part: ([s for s, _ in raw[part]], np.array([number[i] for _, i in raw[part]]))
        for part in ("train", "val", "test")
    }


def network(bits: int, args: argparse.Namespace, *, wired: bool) -> layers.Chain:
    """Make the network: a first layer with no edges, or with `fan_out` random ones for each feature."""
    shape = 2**bits, args.hidden
    if wired:
        edges = wire.constant_fan_out(np.random.default_rng(args.seed), shape, args.fan_out * shape[0])
        first = layers.Linear.from_edges(edges, init=layers.zeros, seed=args.seed)
    else:
        first = layers.Linear.random(*shape, nnz=0, seed=args.seed)
    return layers.Chain(
        layers.Dropout(args.dropout, seed=args.seed + 1),
        first,
        layers.Tanh(),
        layers.Dropout(args.dropout, seed=args.seed + 2),
        layers.Dense.random(args.hidden, 150, seed=args.seed + 3),
    )


def fit(
    model: Any, x: Any, y: Array, args: argparse.Namespace, *, grown: bool, epochs: int
) -> training.State:
    """Train, and return the optimizer's state."""
    batches = data.batches(x, y, batch_size=args.batch, seed=args.seed)
    total = len(batches) * args.epochs
    rewiring = None
    if grown:
        offer = {
            "gradient": grow.fan_out(args.fan_out, by_gradient=True),
            "random": grow.fan_out(args.fan_out),
            "strongest": grow.strongest,
        }[args.offer]
        pace = 0.02 if args.offer == "strongest" else 1.0
        rewiring = topology.grow_on_demand(args.budget, args.every, offer=offer, pace=pace)
    *_, last = training.train(
        model,
        batches,
        optimizer=training.adam(lambda step: args.rate * (1 - step / total)),
        rewiring=rewiring,
        epochs=epochs,
        seed=args.seed,
    )
    return last.state


def accuracy(model: Any, x: Any, y: Array) -> float:
    """Return the share of rows whose class is found."""
    found = [model.forward(x[k : k + 256])[0].argmax(axis=1) for k in range(0, x.shape[0], 256)]
    return float((np.concatenate(found) == y).mean())


def kept(model: Any, state: training.State) -> int:
    """Return the bytes of parameters, optimizer state and what rewiring remembers."""
    own: int = sum(p.nbytes for p in model.parameters().values())
    slots: int = sum(a.nbytes for held in state.slots.values() for a in held.values())
    remembered: int = sum(
        a.nbytes for m in state.memory.values() for a in (*m.edges.values(), *m.layer.values())
    )
    return own + slots + remembered


def run(name: str, bits: int, parts: dict[str, tuple[list[str], Array]], args: argparse.Namespace) -> None:
    """Train one of the networks and print a row."""
    grown = not name.endswith("random")
    text = data.HashingText(words=(1, 2), characters=(1, 4), tf="log", bits=bits)
    begin = time.perf_counter()
    x, y = text.fit_transform(parts["train"][0]), parts["train"][1]
    hashed = time.perf_counter() - begin
    peak = 0
    if not args.no_memory:
        gc.collect()
        tracemalloc.start()
        fit(network(bits, args, wired=not grown), x, y, args, grown=grown, epochs=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.collect()
    model = network(bits, args, wired=not grown)
    begin, worked = time.perf_counter(), time.process_time()
    state = fit(model, x, y, args, grown=grown, epochs=args.epochs)
    wall, cpu = time.perf_counter() - begin, time.process_time() - worked
    scores = [accuracy(model, text.transform(parts[part][0]), parts[part][1]) for part in ("val", "test")]
    first = model.parameters()["1.weights"]
    assert isinstance(first, Weights)
    print(
        f"{name:12} val {scores[0]:.4f} test {scores[1]:.4f}  edges {first.nnz:>9,}  "
        f"features {len(first.edges.by_source.ids):>9,}  kept {kept(model, state) / 1e6:6.1f} MB  "
        f"peak {'-' if args.no_memory else f'{peak / 1e6:.1f} MB':>8}  hash {hashed:.1f} s  "
        f"train {wall:.1f} s (cpu {cpu:.1f} s)",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the contenders one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="../shared/data/clinc150_full.json.gz")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--fan-out", type=int, default=8)
    parser.add_argument("--budget", type=int, default=400_000)
    parser.add_argument("--offer", choices=["gradient", "random", "strongest"], default="strongest")
    parser.add_argument("--every", type=int, default=10, help="steps between rewirings")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-memory", action="store_true", help="only accuracy and time")
    parser.add_argument("--only", nargs="*", default=["2^60", "2^20", "2^20, random"])
    args = parser.parse_args(argv)
    parts = load(args.data)
    for name in args.only:
        run(name, int(name[2:4]), parts, args)
    print(f"largest resident size {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
