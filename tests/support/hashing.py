"""The definition of hashed features in plain Python: what the compiled loops are tested against."""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections import Counter

import numpy as np
import scipy.sparse as sp

P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK = 2**64 - 1


def rotated(x, bits):
    x &= MASK
    return (x << bits | x >> (64 - bits)) & MASK


def xxh64(data, seed=0):
    """XXH64 after its specification (xxHash, doc/xxhash_spec.md)."""
    rest = data
    if len(data) >= 32:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while len(rest) >= 32:
            for k, word in enumerate(struct.unpack("<4Q", rest[:32])):
                lanes[k] = rotated(lanes[k] + word * P2, 31) * P1 & MASK
            rest = rest[32:]
        total = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = (total ^ rotated(lane * P2, 31) * P1 & MASK) * P1 + P4 & MASK
    else:
        total = seed + P5
    total = total + len(data) & MASK
    while len(rest) >= 8:
        word = int.from_bytes(rest[:8], "little")
        total = rotated(total ^ rotated(word * P2, 31) * P1 & MASK, 27) * P1 + P4 & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        total = rotated(total ^ int.from_bytes(rest[:4], "little") * P1 & MASK, 23) * P2 + P3 & MASK
        rest = rest[4:]
    for byte in rest:
        total = rotated(total ^ byte * P5 & MASK, 11) * P1 & MASK
    total = (total ^ total >> 33) * P2 & MASK
    total = (total ^ total >> 29) * P3 & MASK
    return total ^ total >> 32


def column(text, bits=60, seed=0):
    return xxh64(text.encode() if isinstance(text, str) else text, seed) >> (64 - bits)


def word_ngrams(text, low, high, pattern):
    words = text.split() if pattern is None else re.findall(pattern, text)
    for n in range(low, high + 1):
        for k in range(len(words) - n + 1):
            yield " ".join(words[k : k + n])


def character_ngrams(text, low, high, across):
    if across:
        for n in range(low, high + 1):
            yield from (text[k : k + n] for k in range(len(text) - n + 1))
        return
    for word in text.split():
        padded = f" {word} "
        for n in range(low, high + 1):
            if n >= len(padded):
                yield padded
                break
            yield from (padded[k : k + n] for k in range(len(padded) - n + 1))


def counted(
    text,
    *,
    words=None,
    characters=None,
    across=False,
    token_pattern=r"\w+",
    lowercase=True,
    form="NFKC",
    strip_accents=False,
    bits=60,
    seed=0,
):
    """Column -> count of one text."""
    if strip_accents and not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    if form:
        text = unicodedata.normalize(form, text)
    text = " ".join(text.split())
    if lowercase:
        text = text.lower()
    counts = Counter()
    if words:
        counts.update(column(gram, bits, seed) for gram in word_ngrams(text, *words, token_pattern))
    if characters:
        other = seed ^ 0x9E3779B97F4A7C15
        counts.update(column(gram, bits, other) for gram in character_ngrams(text, *characters, across))
    return counts


def weighed(rows, learned, *, tf="count", idf=True, min_df=1, unit_length=True):
    """One dict column -> weight for each of `rows`; both are lists of counts, df is of `learned`."""
    df = Counter(column for row in learned for column in row)
    for row in rows:
        out = {}
        for key, count in row.items():
            if df[key] >= min_df:
                weight = {"count": count, "binary": 1, "log": 1 + math.log(count)}[tf]
                out[key] = weight * (math.log((1 + len(learned)) / (1 + df[key])) + 1 if idf else 1)
        length = math.sqrt(math.fsum(w * w for w in out.values())) if unit_length else 1
        yield {key: weight / (length or 1) for key, weight in out.items()}


def as_dicts(matrix):
    """One dict column -> value for each row of a CSR matrix whose columns must ascend."""
    rows = []
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        columns = matrix.indices[begin:end].tolist()
        assert columns == sorted(set(columns))
        rows.append(dict(zip(columns, matrix.data[begin:end].tolist(), strict=True)))
    return rows


def with_few_columns(*matrices):
    """CSR matrices with their used columns numbered anew, together: SciPy's .T takes a pointer a column."""
    used, small = np.unique(np.concatenate([x.indices for x in matrices]), return_inverse=True)
    ends = np.cumsum([x.nnz for x in matrices])
    return [
        sp.csr_array((x.data, small[end - x.nnz : end], x.indptr), shape=(x.shape[0], used.size))
        for x, end in zip(matrices, ends, strict=True)
    ]


def gram(x):
    """Inner products of all rows: the same for any order of columns."""
    (few,) = with_few_columns(x)
    return (few @ few.T).toarray()
