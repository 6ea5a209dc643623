"""One epoch on a text set of 900,000 features: SparseMLPClassifier against scikit-learn's MLPClassifier.

    python benchmarks/text/many_features.py [--hidden 100] [--features 926435]

The texts are WordNet's glosses, ten of one class in a row, as words 1-3: about as many rows and features as
20 Newsgroups has. Same hidden width, batch size 200 and one epoch for both, each in a process of its own that
has trained on a few rows before. `extra` is the most memory the process held while it trained, over what it
held before, data included. A linear model by SGD is the third. (Linux only.)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import scipy.sparse as sp
from targets import numbered

from gbnn.data import HashingText

SIDES = ("gbnn", "MLPClassifier", "SGDClassifier")


def rows(features: int) -> tuple[Any, Any]:
    """Return CSR of at most so many features, the most frequent, and classes."""
    parts = corpora.glosses()
    order = np.argsort(parts.y_train, kind="stable")
    texts, y = [], []
    for start in range(0, len(order) - 9, 10):
        ten = order[start : start + 10]
        texts.append(" ".join(parts.train[i] for i in ten))
        y.append(parts.y_train[ten[0]])
    x = HashingText(words=(1, 3), characters=None, tf="log").fit_transform(texts)
    x, _ = numbered(x, x)
    keep = np.sort(np.argsort(-np.bincount(x.indices), kind="stable")[:features])
    return sp.csr_array(x[:, keep]), np.asarray(y)


def held(what: str) -> float:
    """Return VmRSS, the memory of this process, or VmHWM, the most since `forget`, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(what))) / 1e3


def forget() -> None:
    """Have the most memory counted from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def one(side: str, hidden: int, features: int) -> None:
    """Train one epoch in this process and print what it took."""
    x, y = rows(features)
    if side == "gbnn":
        from gbnn.interop.sklearn import SparseMLPClassifier

        model: Any = SparseMLPClassifier(hidden, max_iter=1, batch_size=200, random_state=0)
    elif side == "MLPClassifier":
        from sklearn.neural_network import MLPClassifier

        model = MLPClassifier(hidden, max_iter=1, batch_size=200, random_state=0)
    else:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)
    some = np.linspace(0, x.shape[0] - 1, 400).astype(int)
    few = sp.csr_array(x[some][:, np.argsort(-np.bincount(x.indices))[:1000]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one epoch does not converge
        model.fit(few, y[some])
        forget()
        before = held("VmRSS")
        start = time.perf_counter()
        model.fit(x, y)
    seconds = time.perf_counter() - start
    print(
        json.dumps(
            {
                "rows": x.shape,
                "a_row": x.nnz / x.shape[0],
                "seconds": seconds,
                "extra": held("VmHWM") - before,
            }
        )
    )


def main() -> None:
    """Print a row for each side."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hidden", type=int, default=100)
    options.add_argument("--features", type=int, default=926_435)
    options.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    options.add_argument("--one", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        one(given.one, given.hidden, given.features)
        return
    for side in given.sides:
        command = [
            sys.executable,
            sys.argv[0],
            "--hidden",
            str(given.hidden),
            "--features",
            str(given.features),
        ]
        ended = subprocess.run([*command, "--one", side], capture_output=True, text=True, check=True)  # noqa: S603
        said = json.loads(ended.stdout)
        size = f"{said['rows'][0]:,} x {said['rows'][1]:,}, {said['a_row']:.0f} a row"
        print(f"{side:14s} {size}: {said['seconds']:8.1f} s, extra {said['extra']:7.0f} MB", flush=True)


if __name__ == "__main__":
    main()
