"""Print what lenet.py and wide.py found, mean and spread over seeds, beside the published number.

python benchmarks/reproduce/table.py results.jsonl [more.jsonl] [--best]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runs import KEYS

Row = dict[str, Any]

# (script, data, method, sparsity) -> test accuracy in per cent. Of LeNet-300-100, from sparse_learning's
# results/MNIST_sparse_summary.csv; of the wide network, from arXiv:2501.19107 (CHTs: by paths).
PUBLISHED: dict[tuple[str, str, str, float], float] = {
    ("lenet", "mnist", "dense", 0.0): 98.69,
    **{
        ("lenet", "mnist", method, sparsity): value
        for method, values in {
            "set": (98.39, 98.14, 97.74, 95.80),
            "set-falling": (98.39, 98.14, 97.74, 95.80),
            "set-of-the-table": (98.39, 98.14, 97.74, 95.80),
            "sparse-momentum": (98.67, 98.53, 98.20, 97.53),
            "dsr": (98.44, 98.32, 98.14, 97.54),
            "deep-r": (98.19, 98.06, 98.21, 94.00),
        }.items()
        for sparsity, value in zip((0.9, 0.95, 0.98, 0.99), values, strict=True)
    },
    **{
        ("wide", data, method, 0.0 if method == "dense" else 0.99): value
        for data, values in {
            "mnist": (98.78, 98.14, 98.14, 98.61, 98.61, 98.48, 98.81),
            "fashion-mnist": (90.88, 89.00, 89.00, 89.91, 89.91, 88.70, 90.93),
        }.items()
        for method, value in zip(
            ("dense", "set", "set-from-zero", "rigl", "rigl-each-epoch", "cht", "chts"), values, strict=True
        )
    },
}


def main() -> None:
    """Print a row for each group of runs that differ in their seed only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--best", action="store_true", help="the best epoch instead of the last")
    given = parser.parse_args()
    lines = [line for path in given.files for line in path.read_text(encoding="utf-8").splitlines()]
    for line in table(
        (json.loads(line) for line in lines if line.strip()), "best" if given.best else "accuracy"
    ):
        print(line)


def table(rows: Iterable[Row], measure: str = "accuracy") -> list[str]:
    """Return the lines of the table."""
    names = [name for name in KEYS if name != "seed"]
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.get(name) for name in names)].append(row)
    heads = ["script", "data", "sparse", "method", "epochs", "options"]
    heads += ["seeds", "mean", "spread", "published", "gap", "s/epoch"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for key, group in sorted(groups.items(), key=lambda item: [str(part) for part in item[0]]):
        of = dict(zip(names, key, strict=True))
        values = [100 * row[measure] for row in group]
        mean = statistics.mean(values)
        spread = f"{statistics.stdev(values):.2f}" if len(values) > 1 else ""
        known = PUBLISHED.get((of["script"], of["data"], of["method"], of["sparsity"]))
        beside = ("", "") if known is None else (f"{known:.2f}", f"{mean - known:+.2f}")
        seconds = statistics.median(row["seconds_per_epoch"] for row in group)
        chosen = " ".join(
            str(of[name]) for name in ("start", "wire", "allocation", "normalize", "rows") if of.get(name)
        )
        cells = [
            of["script"],
            of["data"],
            f"{of['sparsity']:.2f}",
            of["method"],
            str(of["epochs"]),
            chosen,
            str(len(values)),
            f"{mean:.2f}",
            spread,
            *beside,
            f"{seconds:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
