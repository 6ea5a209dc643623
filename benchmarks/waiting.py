"""OMP_WAIT_POLICY: passive (gbnn's default) against active, in whole training steps of an MLP.

python benchmarks/waiting.py [--rounds 5] [--busy 0]

The policy is read when a process loads OpenMP, so each side is a process of its own, in turn; `--busy` keeps
that many cores occupied meanwhile, as on a shared machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys

CHILD = """
import time
import numpy as np
from gbnn import data, models, training
rng = np.random.default_rng(0)
x, y = rng.random((4096, 784), dtype=np.float32), rng.integers(0, 10, 4096)
model = models.mlp([784, 1000, 1000, 10], nnz=[42_000, 47_000, 10_000], seed=0)
ends = [time.perf_counter() for _ in training.train(model, data.batches(x, y, batch_size=128), epochs=4)]
print(1e3 * np.median(np.diff(ends)))
"""


def _occupy() -> None:
    while True:
        pass


def main() -> None:
    """Print the median milliseconds of a training step under both policies."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--busy", type=int, default=0)
    given = options.parse_args()
    others = [multiprocessing.Process(target=_occupy, daemon=True) for _ in range(given.busy)]
    for other in others:
        other.start()
    taken: dict[str, list[float]] = {"PASSIVE": [], "ACTIVE": [], "": []}
    for _ in range(given.rounds):
        for policy, times in taken.items():
            environment = {**os.environ, "OMP_WAIT_POLICY": policy}
            command = [sys.executable, "-c", CHILD]
            output = subprocess.run(  # noqa: S603
                command, check=True, capture_output=True, text=True, env=environment
            ).stdout
            times.append(float(output))
    for policy, times in taken.items():
        print(f"{policy or '(unset)':8s} {statistics.median(times):8.2f} ms a step ({given.busy} cores busy)")
    for other in others:
        other.terminate()


if __name__ == "__main__":
    main()
