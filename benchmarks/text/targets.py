"""Text and labels: SparseMLPClassifier as it is, against linear support vector machines on the same features.

    python benchmarks/text/targets.py clinc glosses bibtex hypernyms [--shared ../shared/data] [--seeds 0 1 2]

The network is `SparseMLPClassifier(random_state=seed)`, of bibtex with 512 hidden neurons. Features are
hashed to 2**60 columns (`gbnn.data.HashingText`); the linear model, which keeps a number for each column,
gets the same entries with the columns that occur in training numbered from 0. Its C is the best of four on a
fifth of the training rows. One-vs-rest over the 7,106 labels of `hypernyms` is timed on 30 of them.

clinc      characters 1-4 and words 1-2; test accuracy
glosses    words 1-2, in two glosses at least; 45 classes; test accuracy
bibtex     TF-IDF of the given words; 159 labels; P@1, P@3, P@5 on test
hypernyms  as glosses; 7,106 labels; P@1, P@3, P@5 on test
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from gbnn.data import HashingText
from gbnn.interop.sklearn import SparseMLPClassifier
from gbnn.training import metrics

Array = np.ndarray[Any, Any]
KS = (1, 3, 5)
SETTINGS: dict[str, dict[str, Any]] = {"bibtex": {"hidden_layer_sizes": 512}}


def prepared(name: str, shared: Path) -> corpora.Texts:
    """Return rows of features, at most 2**60 columns, and targets."""
    if name == "bibtex":
        parts = corpora.bibtex(shared / "ml_bibtex.npz")
        weigh = TfidfTransformer(sublinear_tf=True).fit(parts.train)
        x, x_test = (sp.csr_array(weigh.transform(x)).astype(np.float32) for x in (parts.train, parts.test))
        return corpora.Texts(x, x_test, parts.y_train, parts.y_test)
    if name == "clinc":
        parts = corpora.clinc(shared / "clinc150_full.json.gz")
        text = HashingText(words=(1, 2), characters=(1, 4), tf="log")
    else:
        parts = corpora.glosses() if name == "glosses" else corpora.hypernyms()
        text = HashingText(words=(1, 2), characters=None, tf="log", min_df=2)
    return corpora.Texts(
        text.fit_transform(parts.train), text.transform(parts.test), parts.y_train, parts.y_test
    )


def numbered(x: Any, x_test: Any) -> tuple[Any, Any]:
    """Return the same rows over the columns that occur in x alone, numbered from 0."""
    columns = np.unique(x.indices)

    def of(rows: Any) -> Any:
        place = np.minimum(np.searchsorted(columns, rows.indices), columns.size - 1)
        keep = columns[place] == rows.indices
        ends = np.append(0, np.cumsum(keep))[rows.indptr].astype(np.int32)
        return sp.csr_array(
            (rows.data[keep], place[keep].astype(np.int32), ends), shape=(rows.shape[0], columns.size)
        )

    return of(x), of(x_test)


def of_classes(parts: corpora.Texts) -> Callable[[Any, Any], str]:
    """Return how well a classifier does on test rows."""
    return lambda model, x: f"accuracy {model.score(x, parts.y_test):.4f}"


def of_labels(parts: corpora.Texts) -> Callable[[Any, Any], str]:
    """Return how well labels are ranked on test rows."""

    def said(model: Any, x: Any) -> str:
        if hasattr(model, "predict_top"):
            ranking, _ = model.predict_top(x, max(KS))
        else:
            ranking = np.argsort(-model.decision_function(x), axis=1, kind="stable")[:, : max(KS)]
        return "  ".join(f"P@{k} {metrics.precision_at_k(ranking, parts.y_test, k):.4f}" for k in KS)

    return said


class OneVsRest:
    """A linear model for each label; scikit-learn's own, of sparse targets, takes the same time."""

    def __init__(self, c: float) -> None:
        self.c = c

    def fit(self, x: Any, y: Any) -> OneVsRest:
        """Fit a model for each label that some row has."""
        targets = y.toarray()
        self.models = [
            LinearSVC(C=self.c, max_iter=300, tol=1e-3).fit(x, targets[:, j]) if targets[:, j].any() else None
            for j in range(targets.shape[1])
        ]
        return self

    def decision_function(self, x: Any) -> Array:
        """Return the score of each label."""
        rows = np.full(x.shape[0], -np.inf)
        scores = [rows if model is None else model.decision_function(x) for model in self.models]
        return np.stack(scores, axis=1)


def linear(name: str, parts: corpora.Texts, x: Any) -> Any:
    """Return the linear model with the best C of four on a fifth of the training rows."""
    if name == "hypernyms":
        return None
    inside, held = corpora.split(x.shape[0], seed=1)
    several = name == "bibtex"
    y = parts.y_train if several else np.asarray(parts.y_train)

    def score(c: float) -> float:
        if not several:
            return float(
                LinearSVC(C=c, max_iter=300, tol=1e-3).fit(x[inside], y[inside]).score(x[held], y[held])
            )
        ranking = np.argsort(-OneVsRest(c).fit(x[inside], y[inside]).decision_function(x[held]), axis=1)
        return metrics.precision_at_k(ranking[:, :1], y[held], 1)

    best = max((0.1, 0.3, 1.0, 3.0), key=score)
    print(f"{name:10s} linear SVM, C {best:g}", end="", flush=True)
    return OneVsRest(best) if several else LinearSVC(C=best, max_iter=300, tol=1e-3)


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """Return what was made and the seconds it took."""
    start = time.perf_counter()
    made = make()
    return made, time.perf_counter() - start


def one_vs_rest(parts: corpora.Texts, x: Any, some: int = 30) -> None:
    """Time `some` of the labels, and say what all would take."""
    y = sp.csc_array(parts.y_train)
    picked = np.random.default_rng(0).choice(y.shape[1], some, replace=False)
    _, seconds = timed(
        lambda: [LinearSVC(max_iter=300, tol=1e-3).fit(x, y[:, [j]].toarray()[:, 0]) for j in picked]
    )
    every, size = seconds * y.shape[1] / some, 8 * y.shape[1] * x.shape[1]
    print(f"hypernyms  one-vs-rest: {every:,.0f} s and {size / 1e9:.1f} GB for all, from {some} of them")


def compare(name: str, given: argparse.Namespace) -> None:
    """Print a row for each model on one target."""
    parts, seconds = timed(lambda: prepared(name, given.shared))
    said = (of_classes if name in ("clinc", "glosses") else of_labels)(parts)
    x, x_test = numbered(parts.train, parts.test)
    size = f"{x.shape[0]:,} rows, {x.shape[1]:,} features, {x.nnz / x.shape[0]:.0f} a row"
    print(f"{name:10s} {size}, {seconds:.1f} s", flush=True)
    for seed in given.seeds:
        network = SparseMLPClassifier(**SETTINGS.get(name, {}), random_state=seed)
        _, seconds = timed(lambda network=network: network.fit(parts.train, parts.y_train))  # type: ignore[misc]
        edges = f"{network.model_.nnz:,} edges, {network.n_iter_} epochs"
        print(
            f"{name:10s} network, seed {seed}: {said(network, parts.test)}  {seconds:.1f} s, {edges}",
            flush=True,
        )
    if given.no_linear:
        return
    opponent = linear(name, parts, x)
    if opponent is None:
        one_vs_rest(parts, x)
    else:
        _, seconds = timed(lambda: opponent.fit(x, parts.y_train))
        print(f": {said(opponent, x_test)}  {seconds:.1f} s", flush=True)


def main() -> None:
    """Compare on every target asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("names", nargs="+", choices=["clinc", "glosses", "bibtex", "hypernyms"])
    options.add_argument("--shared", type=Path, default=Path("../shared/data"), help="CLINC150, bibtex")
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    options.add_argument("--no-linear", action="store_true")
    given = options.parse_args()
    for name in given.names:
        compare(name, given)


if __name__ == "__main__":
    main()
