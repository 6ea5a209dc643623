"""Compiled loops that hash all n-grams of a text where they stand, and count them.

An n-gram of characters is a span of the text's UTF-8, one of words a span of its words joined by one space;
so no n-gram is ever made as an object of its own.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gbnn.data.hashing.xxh64 import hash_span
from gbnn.engine import kept_on_disk

__all__ = ["count_ngrams"]

_u = np.uint64
_SPACE = np.uint8(32)

_compiled = partial(kept_on_disk, nogil=True)


@_compiled
def _mark(text, begin, end, marks):  # type: ignore[no-untyped-def]
    """marks[k] = where character k begins, with one more mark at the end; returns how many there are."""
    characters = 0
    for k in range(begin, end):
        if text[k] & 0xC0 != 0x80:  # not one of the further bytes of a character
            marks[characters] = k
            characters += 1
    marks[characters] = end
    return characters


@_compiled
def _across(text, marks, characters, low, high, seed, shift, columns, top):  # type: ignore[no-untyped-def]
    """Append the column of every n-gram of the text between the outer spaces."""
    length = characters - 2
    for n in range(low, min(high, length) + 1):
        for k in range(1, length - n + 2):
            columns[top] = hash_span(text, _u(marks[k]), _u(marks[k + n]), seed) >> shift
            top += 1
    return top


@_compiled
def _inside(text, marks, characters, low, high, seed, shift, columns, top):  # type: ignore[no-untyped-def]
    """Append the column of every n-gram of each word and its two spaces; of those as long, once."""
    begin = 0
    while begin < characters - 1 and characters > 2:  # two spaces are an empty text
        last = begin + 1
        while text[marks[last]] != _SPACE:
            last += 1
        length = last - begin + 1
        for n in range(low, high + 1):
            if n >= length:
                columns[top] = hash_span(text, _u(marks[begin]), _u(marks[last + 1]), seed) >> shift
                top += 1
                break
            for k in range(begin, begin + length - n + 1):
                columns[top] = hash_span(text, _u(marks[k]), _u(marks[k + n]), seed) >> shift
                top += 1
        begin = last
    return top


@_compiled
def _words(text, stops, begin, end, low, high, seed, shift, columns, top):  # type: ignore[no-untyped-def]
    """Append the column of every n-gram of the words from `begin` to `end`; a space follows each."""
    for n in range(low, min(high, end - begin) + 1):
        for k in range(begin, end - n + 1):
            start = stops[k - 1] if k else 0
            columns[top] = hash_span(text, _u(start), _u(stops[k + n - 1] - 1), seed) >> shift
            top += 1
    return top


@_compiled
def _count(columns, filled, top, counts):  # type: ignore[no-untyped-def]
    """Sort columns[filled:top] and count equal ones, in place; returns where they end then."""
    columns[filled:top].sort()
    first = filled
    for k in range(first, top):
        if filled > first and columns[filled - 1] == columns[k]:
            counts[filled - 1] += 1
        else:
            columns[filled] = columns[k]
            counts[filled] = 1
            filled += 1
    return filled


@_compiled
def count_ngrams(  # type: ignore[no-untyped-def]
    text, text_stops, low, high, across, seed,
    words, word_stops, word_ends, word_low, word_high, word_seed,
    shift, marks, columns, counts, ends,
):  # fmt: skip
    """Fill the columns and counts of each row, and where it ends.

    text_stops : where a first space, then each row's text stops in `text`, a space included; n-grams are of
    `low` to `high` characters, none if high is 0. Words in a text are one space apart. word_stops : where
    each word stops in `words`, its space included; word_ends : how many words there are up to and with each
    row; n-grams are of `word_low` to `word_high`, none if word_high is 0. marks : room for the characters
    of the longest text and three more. columns, counts : room for all n-grams.
    """
    first = filled = 0
    for row in range(ends.size):
        top = filled
        if high > 0:
            characters = _mark(text, text_stops[row] - 1, text_stops[row + 1], marks)
            if across:
                top = _across(text, marks, characters, low, high, seed, shift, columns, top)
            else:
                top = _inside(text, marks, characters, low, high, seed, shift, columns, top)
        if word_high > 0:
            end = word_ends[row]
            top = _words(words, word_stops, first, end, word_low, word_high, word_seed, shift, columns, top)
            first = end
        filled = _count(columns, filled, top, counts)
        ends[row] = filled
