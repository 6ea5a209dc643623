"""From raw text to what n-grams are taken of: one Unicode form, lower case, single spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Literal

from gbnn.data.hashing.encode import as_utf8
from gbnn.errors import ArgumentError, KindError

__all__ = ["FORMS", "Form", "as_pattern", "as_text", "preparer"]

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS = (None, "NFC", "NFD", "NFKC", "NFKD")


def preparer(form: Form | None, strip_accents: bool, lowercase: bool) -> Callable[[str], str]:
    """Return the function that prepares one text.

    The form comes first, so that what Unicode holds to be the same text stays the same in lower case.
    """

    def prepare(text: str) -> str:
        if not text.isascii():
            if strip_accents:
                apart = unicodedata.normalize("NFKD", text)
                text = "".join(c for c in apart if not unicodedata.combining(c))
            if form is not None:
                text = unicodedata.normalize(form, text)
        text = " ".join(text.split())  # after the form, which makes spaces of some characters
        return text.lower() if lowercase else text

    return prepare


def as_text(where: str, value: Any) -> str:
    """Return a str, or the text that bytes hold as UTF-8.

    Raises
    ------
    KindError
        If it is neither str nor bytes.
    ArgumentError
        If it holds lone surrogates, or bytes that are no UTF-8.
    """
    data = as_utf8(where, value)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ArgumentError(where, "bytes of UTF-8", f"0x{data[error.start]:02x} at {error.start}") from None


def as_pattern(where: str, pattern: Any) -> Callable[[str], list[str]]:
    """Return the function that finds all words by a regular expression, or splits at white space (None).

    Raises
    ------
    KindError
        If it is no string.
    ArgumentError
        If it is no regular expression, or has more than one group.
    """
    if pattern is None:
        return str.split
    if not isinstance(pattern, str):
        raise KindError(
            where, "a regular expression or None", f"{pattern!r} of type {type(pattern).__name__}"
        )
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ArgumentError(where, "a regular expression", f"{pattern!r}: {error}") from None
    if compiled.groups > 1:
        raise ArgumentError(where, "at most one group in brackets", f"{compiled.groups} in {pattern!r}")
    return compiled.findall
