"""Text and records to sparse rows: hashing beside scikit-learn, and each compiled loop beside NumPy.

    OMP_NUM_THREADS=1 python benchmarks/hashing.py clinc150_full.json.gz [--workers] [--accuracy]

The data are clinc/oos-eval's: lists of [sentence, intent] named train, val and test. Speeds are in texts,
tokens or entries a second, medians of alternating runs; `--workers` compares threads and processes on the
training sentences 20 times over; `--accuracy` trains a linear SVM on character 1-4-grams at 60 and 20 bits.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.svm import LinearSVC
from timing import alternate

from gbnn.data import HashingText, hash_features
from gbnn.data.hashing.add_up import add_up
from gbnn.data.hashing.frequencies import Frequencies

Array = np.ndarray[Any, Any]

CHARACTERS = {"words": None, "characters": (1, 4)}
THEIR_CHARACTERS = {"analyzer": "char_wb", "ngram_range": (1, 4), "dtype": np.float32}
WORDS = {"words": (1, 2), "characters": None}
THEIR_WORDS = {"ngram_range": (1, 2), "dtype": np.float32}


def report(title: str, count: int, sides: dict[str, Callable[[], object]], rounds: int = 5) -> None:
    """Print how many a second each side does."""
    print(f"\n{title}, {count:,}")
    for name, seconds in alternate(sides, rounds).items():
        print(f"  {name:34} {seconds:8.3f} s {count / seconds:14,.0f} a second", flush=True)


def compare_texts(texts: list[str]) -> None:
    """N-grams of characters and words, and TF-IDF, each against scikit-learn's nearest."""
    stateless: dict[str, Any] = {"idf": False}
    report(
        "character 1-4-grams, stateless: texts",
        len(texts),
        {
            "HashingText": lambda: HashingText(**CHARACTERS, **stateless).transform(texts),  # type: ignore[arg-type]
            "HashingVectorizer": lambda: HashingVectorizer(**THEIR_CHARACTERS).transform(texts),
        },
    )
    report(
        "word 1-2-grams, stateless: texts",
        len(texts),
        {
            "HashingText": lambda: HashingText(**WORDS, **stateless).transform(texts),  # type: ignore[arg-type]
            "HashingVectorizer": lambda: HashingVectorizer(**THEIR_WORDS).transform(texts),
        },
    )
    report(
        "character 1-4-grams, TF-IDF, fit_transform: texts",
        len(texts),
        {
            "HashingText": lambda: HashingText(**CHARACTERS).fit_transform(texts),  # type: ignore[arg-type]
            "TfidfVectorizer": lambda: TfidfVectorizer(**THEIR_CHARACTERS).fit_transform(texts),
        },
    )


def compare_records(rng: np.random.Generator) -> None:
    """Tokens and dicts against FeatureHasher."""
    tokens = [[f"token{k}" for k in row] for row in rng.integers(0, 10**6, (25_000, 20))]
    numbers = [dict.fromkeys(row, 1.5) for row in tokens]
    for title, kind, records in (("tokens", "string", tokens), ("numbers by name", "dict", numbers)):
        hasher = FeatureHasher(2**20, input_type=kind)
        sides: dict[str, Callable[[], object]] = {
            "hash_features": partial(hash_features, records),
            "FeatureHasher": partial(hasher.transform, records),
        }
        report(f"records of 20: {title}", 500_000, sides)


def compare_loops(rng: np.random.Generator) -> None:
    """Each compiled loop against the best that NumPy does."""
    rows, each = 25_000, 20
    columns, values = rng.integers(0, 2**60, rows * each), np.ones(rows * each)
    stops, ends = np.arange(each, rows * each + 1, each), np.empty(rows, dtype=np.int64)

    def by_numpy() -> Array:
        number = np.repeat(np.arange(rows), each)
        order = np.lexsort((columns, number))
        sorted_columns, sorted_rows = columns[order], number[order]
        new = np.ones(order.size, dtype=bool)
        new[1:] = (sorted_columns[1:] != sorted_columns[:-1]) | (sorted_rows[1:] != sorted_rows[:-1])
        sums: Array = np.add.reduceat(values[order], np.flatnonzero(new))
        return sums

    sides: dict[str, Callable[[], object]] = {
        "add_up": lambda: add_up(stops, columns.copy(), values.copy(), ends),
        "NumPy lexsort, reduceat": by_numpy,
    }
    report("sort rows of 20 and add up: entries", columns.size, sides)

    batches = [rng.integers(0, 2**18, 20_000) << 40 for _ in range(40)]

    def by_table() -> None:
        seen = Frequencies()
        for batch in batches:
            seen.add(batch)

    def by_unique() -> None:
        keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for batch in batches:
            more, amounts = np.unique(batch, return_counts=True)
            every, place = np.unique(np.concatenate([keys, more]), return_inverse=True)
            keys, counts = every, np.bincount(place, np.concatenate([counts, amounts])).astype(np.int64)

    sides = {"Frequencies": by_table, "NumPy unique": by_unique}
    report("count columns, 40 batches: entries", 800_000, sides)


def compare_workers(texts: list[str]) -> None:
    """One worker, two threads, two processes."""
    for title, options in (("characters", CHARACTERS), ("words", WORDS)):
        features = HashingText(**options).fit(texts)  # type: ignore[arg-type]
        sides: dict[str, Callable[[], object]] = {
            "1 worker": partial(features.transform, texts),
            "2 threads": partial(features.transform, texts, workers=2),
            "2 processes": partial(features.transform, texts, workers=2, processes=True),
        }
        report(f"{title}: texts", len(texts), sides, rounds=3)


def accuracy(train: list[list[str]], test: list[list[str]]) -> None:
    """Test accuracy of a linear SVM on hashed character n-grams."""
    (texts, labels), (others, wanted) = zip(*train, strict=True), zip(*test, strict=True)
    print("\ncharacter 1-4-grams, linear SVM: test accuracy")
    for bits in (60, 20):
        features = HashingText(**CHARACTERS, bits=bits)  # type: ignore[arg-type]
        parts = features.fit_transform(texts), features.transform(others)
        # LIBLINEAR keeps a weight a column: those in use are numbered anew.
        used, small = np.unique(np.concatenate([x.indices for x in parts]), return_inverse=True)
        ends = np.cumsum([x.nnz for x in parts])
        x, y = (
            sp.csr_matrix((p.data, small[e - p.nnz : e].astype(np.int32), p.indptr.astype(np.int32)),
                          shape=(p.shape[0], used.size))
            for p, e in zip(parts, ends, strict=True)
        )  # fmt: skip
        score = LinearSVC(random_state=0).fit(x, labels).score(y, wanted)
        print(f"  {bits} bits, {features.features_seen:,} columns seen: {score:.4f}", flush=True)
    vectorizer = CountVectorizer(**THEIR_CHARACTERS).fit(texts)
    print(f"  distinct n-grams: {len(vectorizer.vocabulary_):,}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--accuracy", action="store_true")
    arguments = parser.parse_args()
    with gzip.open(arguments.data) as file:
        data = json.load(file)
    texts = [text for text, _ in data["train"]]
    if arguments.workers:
        compare_workers(texts * 20)
    elif arguments.accuracy:
        accuracy(data["train"], data["test"])
    else:
        rng = np.random.default_rng(0)
        compare_texts(texts)
        compare_records(rng)
        compare_loops(rng)


if __name__ == "__main__":
    main()
