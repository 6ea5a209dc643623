"""Fashion-MNIST, 784-1000-1000-10, hidden layers 5 % dense: static, SET and RigL.

    python benchmarks/fashion_mnist.py [--epochs 10] [--seeds 0]

Each run is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys


def main() -> None:
    """Print a row a method and seed: accuracy, seconds an epoch, edges per second, peak memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    options.add_argument("--methods", nargs="+", default=["none", "set", "rigl"])
    given, more = options.parse_known_args()
    print("method  seed  accuracy  s/epoch  edges/s   peak MB  nnz")
    for method in given.methods:
        for seed in given.seeds:
            command = [sys.executable, "-m", "gbnn", "train", "--json", "--quiet", "--data", "fashion-mnist"]
            command += ["--hidden", "1000", "1000", "--density", "0.05", "--rewire", method]
            command += ["--epochs", str(given.epochs), "--seed", str(seed), *more]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
            r = json.loads(output)
            print(
                f"{method:7s} {seed:4d}  {r['test']['accuracy']:8.4f}  {r['seconds_per_epoch']:7.2f}"
                f"  {r['edges_per_second']:.2e}  {r['peak_bytes'] / 1e6:6.0f}  {r['nnz']:,}",
                flush=True,
            )


if __name__ == "__main__":
    main()
