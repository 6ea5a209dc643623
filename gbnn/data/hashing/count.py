"""From texts to counted n-grams: `NGrams` holds the settings, and does one block of texts at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from gbnn.data.hashing.encode import texts_joined
from gbnn.data.hashing.ngrams import count_ngrams
from gbnn.data.hashing.prepare import FORMS, Form, as_pattern, as_text, preparer
from gbnn.data.hashing.rows import Block
from gbnn.errors import ArgumentError, check_bool, check_int, check_list

__all__ = ["NGrams", "in_cache", "numbered"]

BLOCK = 2**16
"""Characters that are hashed at a time (a longer text is hashed alone): their n-grams stay in cache."""

LONGEST = 64
"""Longest n-gram, in words or characters."""

NONE = (0, 0)
"""The range of no n-grams."""

CHARACTERS = 0x9E3779B97F4A7C15
"""Mixed into the seed for characters, so that the word "a" and the character "a" are two features."""


@dataclass(frozen=True)
class NGrams:
    """What to count in a text; checked by `HashingText`. A range of (0, 0) is none."""

    bits: int
    words: tuple[int, int]
    characters: tuple[int, int]
    across: bool
    token_pattern: str | None
    lowercase: bool
    form: Form | None
    strip_accents: bool
    seed: int

    @classmethod
    def checked(
        cls,
        bits: Any,
        words: Any,
        characters: Any,
        across: Any,
        token_pattern: Any,
        lowercase: Any,
        form: Any,
        strip_accents: Any,
        seed: Any,
    ) -> NGrams:
        """Make it of what a user gave, None for a range of none, or raise ArgumentError or KindError."""
        if form not in FORMS:
            raise ArgumentError("form", f"one of {FORMS}", repr(form))
        as_pattern("token_pattern", token_pattern)
        made = cls(
            bits=check_int("bits", bits, 1, 60),
            words=_span("words", words),
            characters=_span("characters", characters),
            across=check_bool("across", across),
            token_pattern=token_pattern,
            lowercase=check_bool("lowercase", lowercase),
            form=form,
            strip_accents=check_bool("strip_accents", strip_accents),
            seed=check_int("seed", seed, 0, 2**64 - 1),
        )
        if made.words == made.characters == NONE:
            raise ArgumentError("words, characters", "n-grams of one kind at least", "None and None")
        return made

    def count(self, first: int, texts: list[Any]) -> Block:
        """Count the n-grams of some texts, each one row of the block; `first` is the row of the first.

        Raises KindError or ArgumentError that names the row of a text which is none.
        """
        if not set(map(type, texts)) <= {str}:
            texts = [as_text(f"texts[{row}]", text) for row, text in enumerate(texts, first)]
        prepared = list(map(preparer(self.form, self.strip_accents, self.lowercase), texts))
        try:
            if not self.characters[1]:
                "".join(prepared).encode()  # words need not cover what is no text
            return self._count(prepared)
        except UnicodeEncodeError:
            for row, text in enumerate(texts, first):
                as_text(f"texts[{row}]", text)
            raise

    def _count(self, texts: list[str]) -> Block:
        rows = len(texts)
        # Each text stands between two spaces, its own and the last one's.
        text, text_stops = texts_joined(["", *texts] if self.characters[1] else [], " ")
        words, word_stops, word_ends = np.empty(0, np.uint8), np.empty(0, np.int64), np.zeros(rows, np.int64)
        if self.words[1]:
            found = list(map(as_pattern("token_pattern", self.token_pattern), texts))
            words, word_stops = texts_joined(list(chain.from_iterable(found)), " ")
            word_ends = np.cumsum(np.fromiter(map(len, found), np.int64, rows))
        longest = int(np.diff(text_stops).max(initial=0)) + 2
        # A word of k characters has k + 2 with its spaces, so all have at most 1.5 times what the text has.
        room = _sizes(self.characters) * (text.size + text.size // 2)
        room += _sizes(self.words) * word_stops.size
        columns, counts = np.empty(room, np.int64), np.empty(room, np.int32)
        ends = np.empty(rows, np.int64)
        count_ngrams(
            text, text_stops, *self.characters, self.across, np.uint64(self.seed ^ CHARACTERS),
            words, word_stops, word_ends, *self.words, np.uint64(self.seed),
            np.uint64(64 - self.bits), np.empty(longest, np.int64), columns, counts, ends,
        )  # fmt: skip
        filled = ends[-1]
        return Block(columns[:filled].copy(), counts[:filled].copy(), ends)


def in_cache(texts: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield lists of texts with about `BLOCK` characters."""
    block: list[Any] = []
    size = 0
    for text in texts:
        block.append(text)
        size += 16 + (len(text) if isinstance(text, str | bytes) else 0)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def numbered(blocks: Iterator[list[Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Yield each block with the row of its first text."""
    first = 0
    for block in blocks:
        yield first, block
        first += len(block)


def _sizes(span: tuple[int, int]) -> int:
    return span[1] - span[0] + 1 if span[1] else 0


def _span(where: str, span: Any) -> tuple[int, int]:
    if span is None:
        return NONE
    ends = check_list(where, span, "a pair (least, most) or None")
    if len(ends) != 2:
        raise ArgumentError(where, "a pair (least, most) or None", span)
    low = check_int(f"{where}, least", ends[0], 1, LONGEST)
    return low, check_int(f"{where}, most", ends[1], low, LONGEST)
