"""`gbnn demo`: everything once, on digits, in seconds."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from gbnn import training
from gbnn.data import Dataset, digits
from gbnn.layers import Layer
from gbnn.models import mlp
from gbnn.topology import Rewiring, rigl
from gbnn.training.checkpoint import load, save

__all__ = ["run"]

Array = np.ndarray[Any, Any]
Result = dict[str, Any]

NARROW, TIMES = 8, 10
EPOCHS, BATCH = 30, 32


def run(options: Namespace) -> tuple[Result, str]:
    """Train a wide sparse network and its dense twin with as many weights; save, reload, predict."""
    dataset = digits()
    dense = mlp([64, NARROW, 10], density=1.0, seed=options.seed)
    wide = mlp([64, NARROW * TIMES, 10], nnz=dense.nnz, seed=options.seed)
    quiet = options.json
    say = (lambda line: None) if quiet else print
    say(f"{dataset.describe()}\n")
    say(f"A dense network, 64 - {NARROW} - 10, and one {TIMES} times wider with as many weights:\n")
    say(f"{wide.describe()}\n")
    scores = {
        "dense": _trained(dense, dataset, None, options.seed, quiet),
        "sparse": _trained(wide, dataset, rigl(every=20), options.seed, quiet),
    }
    result: Result = {}
    for name, model in (("dense", dense), ("sparse", wide)):
        width = model.in_features, NARROW * (TIMES if name == "sparse" else 1), model.out_features
        result[name] = {"widths": width, "nnz": model.nnz, "bytes": model.nbytes, **scores[name]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.safetensors"
        save(path, wide)
        again = load(path)
        result["file_bytes"] = path.stat().st_size
    x, y = dataset.x_test[:4], dataset.y_test[:4]
    guesses = training.predict(again, x)
    result["predictions"] = guesses.tolist()
    result["labels"] = y.tolist()
    result["reloaded_equals_saved"] = bool(
        np.array_equal(training.outputs(again, dataset.x_test), training.outputs(wide, dataset.x_test))
    )
    return result, _text(result, x, guesses, y)


def _trained(
    model: Layer, dataset: Dataset, rewiring: Rewiring | None, seed: int, quiet: bool
) -> dict[str, Any]:
    history = training.fit(
        model,
        dataset.train,
        epochs=EPOCHS,
        batch_size=BATCH,
        optimizer=training.adam(
            training.schedules.cosine(3e-3, steps=EPOCHS * -(-len(dataset.y_train) // BATCH))
        ),
        rewiring=rewiring,
        seed=seed,
        progress=False if quiet else None,
    )
    moved = sum(history["grown"])
    return {"moved_edges": moved, **training.evaluate(model, dataset.test)}


def _text(result: Result, x: Array, guesses: Array, labels: Array) -> str:
    lines = ["network   hidden  weights  edges moved  model bytes  test accuracy"]
    for name in ("dense", "sparse"):
        row = result[name]
        lines.append(
            f"{name:8s} {row['widths'][1]:7,} {row['nnz']:8,} {row['moved_edges']:12,}"
            f" {row['bytes']:12,} {row['accuracy']:14.4f}"
        )
    dense_bytes = 4 * (64 * NARROW * TIMES + NARROW * TIMES * 11 + 10)
    lines += [
        f"(a dense network as wide as the sparse one would take {dense_bytes:,} bytes)",
        "",
        f"Saved to one file of {result['file_bytes']:,} bytes and loaded again: outputs are "
        f"{'identical' if result['reloaded_equals_saved'] else 'DIFFERENT'}.",
        "The loaded network reads:",
        "",
        _drawn(x),
        "   ".join(
            f"{guess} (it is {label})".ljust(16) for guess, label in zip(guesses, labels, strict=True)
        ),
        "",
        "Next: gbnn train --data digits --hidden 500 --density 0.1 --rewire rigl --out digits.safetensors",
    ]
    return "\n".join(lines)


def _drawn(images: Array) -> str:
    """Draw images of 8 x 8 pixels side by side, two characters a pixel."""
    shades = " .:-=+*#%@"
    rows = []
    for line in range(8):
        pixels = images[:, line * 8 : (line + 1) * 8]
        rows.append("   ".join("".join(2 * shades[round(9 * float(p))] for p in row) for row in pixels))
    return "\n".join(rows)
