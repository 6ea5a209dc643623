"""WordNet's hypernyms, 7,106 labels: a network whose head scores only the labels it is asked for.

    python benchmarks/text/labels.py [--epochs 3] [--hidden 256] [--negatives 500] [--exact]

Glosses as hashed words 1-2 (2**60 columns), a sparse layer from the features that occur, ReLU, and
`ManyLabels`; softmax over the row's own labels, each an equal share of the target, and negatives drawn for
each batch (`losses.Sampled`), or over all labels, of a full head (`--exact`). P@1, P@3, P@5 on 20 % of the
rows. The 10 nearest neighbours have a P@1 of 0.618.
"""

from __future__ import annotations

import argparse
import time

import corpora
import numpy as np

from gbnn import data, layers, losses, topology, training
from gbnn.edges import Edges
from gbnn.layers import Chain
from gbnn.training import metrics
from gbnn.weights import Weights


def network(columns: np.ndarray, hidden: int, labels: int, seed: int, *, exact: bool) -> Chain:
    """Return the network: every feature that occurs has an edge to each hidden neuron, near 0 at first."""
    rng = np.random.default_rng(seed)
    count = columns.size * hidden
    starts = np.arange(columns.size + 1) * hidden
    edges = Edges.grouped(columns, starts, np.tile(np.arange(hidden), columns.size), (2**60, hidden))
    values = 0.03 * rng.standard_normal(count, dtype=np.float32)
    first = layers.Linear(Weights(edges, values), np.zeros(hidden))
    if exact:
        head: layers.Layer = layers.Dense.random(hidden, labels, seed=rng)
    else:
        graph = topology.wire.random(rng, (hidden, labels), hidden * labels)
        head = layers.ManyLabels.from_edges(graph, seed=rng)
    return Chain(first, layers.Relu(), layers.Dropout(0.3, rng), head)


def main() -> None:
    """Train and print how well labels are ranked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--hidden", type=int, default=256)
    options.add_argument("--negatives", type=int, default=500)
    options.add_argument("--exact", action="store_true")
    options.add_argument("--rows", type=int, help="train on so many rows only")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    parts = corpora.hypernyms()
    text = data.HashingText(words=(1, 2), characters=None, tf="log", min_df=2)
    x, x_test = text.fit_transform(parts.train[: given.rows]), text.transform(parts.test)
    y = parts.y_train[: given.rows]
    columns = np.unique(x.indices)
    model = network(columns, given.hidden, y.shape[1], given.seed, exact=given.exact)
    base = losses.MultiLabelCrossEntropy()
    loss = base if given.exact else losses.Sampled(base, losses.negatives.uniform(given.negatives))
    rate = training.schedules.linear(5e-3, 0.0, given.epochs * -(-x.shape[0] // 128))
    print(
        f"{x.shape[0]:,} rows, {columns.size:,} features, {y.shape[1]:,} labels, {model.nnz:,} edges",
        flush=True,
    )
    start = time.perf_counter()
    training.fit(
        model,
        (x, y),
        epochs=given.epochs,
        loss=loss,
        optimizer=training.adam(rate),
        seed=given.seed,
        progress=False,
    )
    seconds = time.perf_counter() - start
    ranking, _ = training.top_k(model, x_test, 5)
    said = "  ".join(f"P@{k} {metrics.precision_at_k(ranking, parts.y_test, k):.4f}" for k in (1, 3, 5))
    print(f"{said}  {seconds:.0f} s of training")


if __name__ == "__main__":
    main()
