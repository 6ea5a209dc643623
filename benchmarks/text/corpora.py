"""Real texts and their targets: CLINC150, WordNet's glosses, bibtex.

CLINC150 and bibtex are files (paths are arguments); WordNet 3.0 is the Debian package `wordnet-base`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Texts", "bibtex", "clinc", "glosses", "hypernyms", "split"]

Array = np.ndarray[Any, Any]
WORDNET = Path("/usr/share/wordnet")


@dataclass
class Texts:
    """Texts (or, of bibtex, rows of word counts) and their targets, in a training and a test part."""

    train: Any
    test: Any
    y_train: Any
    y_test: Any


def split(rows: int, test: float = 0.2, seed: int = 0) -> tuple[Array, Array]:
    """Return the rows to train and to test with, ascending: one random permutation, cut once."""
    order = np.random.default_rng(seed).permutation(rows)
    cut = round(rows * test)
    return np.sort(order[cut:]), np.sort(order[:cut])


def clinc(path: Path) -> Texts:
    """Return CLINC150 (Larson et al., EMNLP 2019): short sentences of 150 intents, without those of none."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        raw = json.load(file)
    parts = {part: tuple(zip(*raw[part], strict=True)) for part in ("train", "test")}
    (train, y), (test, y_test) = parts["train"], parts["test"]
    return Texts(list(train), list(test), list(y), list(y_test))


def bibtex(path: Path) -> Texts:
    """Return bibtex (Katakis et al., 2008): 7,395 bags of words, 159 tags, 20 % at random to test."""
    with np.load(path, allow_pickle=False) as file:
        x, y = (
            sp.csr_array(
                tuple(file[f"{k}_{part}"] for part in ("data", "indices", "indptr")),
                tuple(file[f"{k}_shape"]),
            )
            for k in "XY"
        )
    train, test = split(x.shape[0])
    return Texts(x[train].astype(np.float32), x[test].astype(np.float32), y[train], y[test])


@dataclass(frozen=True)
class _Synset:
    key: tuple[str, int]
    file: int
    above: tuple[tuple[str, int], ...]
    gloss: str


@cache
def _synsets(kinds: tuple[str, ...]) -> list[_Synset]:
    """Read data files: `offset file pos count (word id)... count (symbol offset pos source)... | gloss`."""
    found = []
    for kind in kinds:
        for line in (WORDNET / f"data.{kind}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            head, _, gloss = line.partition(" | ")
            words = head.split()
            start = 4 + 2 * int(words[3], 16)
            pointers = (words[start + 1 + 4 * k : start + 5 + 4 * k] for k in range(int(words[start])))
            above = tuple((p[2], int(p[1])) for p in pointers if p[0] in ("@", "@i"))
            found.append(_Synset((words[2], int(words[0])), int(words[1]), above, gloss.strip()))
    return found


def glosses() -> Texts:
    """Return all 117,659 glosses and their lexicographer file, 45 classes; 20 % at random to test."""
    synsets = _synsets(("noun", "verb", "adj", "adv"))
    train, test = split(len(synsets))
    texts, y = [s.gloss for s in synsets], np.array([s.file for s in synsets])
    return Texts([texts[i] for i in train], [texts[i] for i in test], y[train], y[test])


def hypernyms(least: int = 5, most: float = 0.05) -> Texts:
    """Return the glosses of nouns and verbs and all that is above them; rows without a label are left out.

    Labels are kept that are on `least` rows or more and on a share of `most` or less.
    """
    synsets = _synsets(("noun", "verb"))
    place = {s.key: i for i, s in enumerate(synsets)}
    above = [[place[key] for key in s.above if key in place] for s in synsets]
    known: dict[int, frozenset[int]] = {}

    def closure(i: int) -> frozenset[int]:
        if i not in known:
            known[i] = frozenset()  # WordNet 3.0 has one circle
            known[i] = frozenset(above[i]).union(*(closure(j) for j in above[i]))
        return known[i]

    sets = [sorted(closure(i)) for i in range(len(synsets))]
    columns = np.array([j for labels in sets for j in labels])
    starts = np.cumsum([0, *map(len, sets)])
    y = sp.csr_array((np.ones(columns.size, np.float32), columns, starts), shape=(len(sets), len(sets)))
    count = np.bincount(columns, minlength=len(sets))
    y = sp.csr_array(y[:, np.flatnonzero((count >= least) & (count <= most * len(sets)))])
    has = np.flatnonzero(np.diff(y.indptr))
    y, texts = sp.csr_array(y[has]), [synsets[i].gloss for i in has]
    y.sort_indices()
    train, test = split(len(texts))
    return Texts([texts[i] for i in train], [texts[i] for i in test], y[train], y[test])
