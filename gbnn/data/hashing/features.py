"""`hash_features`: records of tokens or of named numbers to sparse rows, without a vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from gbnn.data.hashing.add_up import add_up
from gbnn.data.hashing.encode import as_stream, as_utf8, in_blocks, joined, texts_joined
from gbnn.data.hashing.rows import Block, csr
from gbnn.data.hashing.xxh64 import hash_spans
from gbnn.errors import ArgumentError, KindError, NonFiniteError, check_bool, check_int

__all__ = ["hash_batches", "hash_features"]

Array = np.ndarray[Any, Any]

BLOCK = 4096
"""Records that are taken into memory at a time."""

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def hash_features(records: Any, bits: int = 60, *, signed: bool = False, seed: int = 0) -> Any:
    """Turn records into sparse rows: the hash of a feature's name is its column.

    Parameters
    ----------
    records : iterable of records, possibly a generator
        A record is one row, and is either

        - an iterable of tokens, str or bytes (a str stands for its UTF-8), each worth 1,
        - an iterable of pairs (token, number), mixed with tokens or not,
        - a mapping from token to number.

        Where a string stands in place of the number, the feature is named ``token=string`` and worth 1, so
        that categories need no encoding. Features worth 0 are left out.
    bits : int
        From 1 to 60: there are ``2**bits`` columns.
    signed : bool
        Multiply each feature by +1 or -1, drawn by its hash. The inner product of two rows is then unbiased
        in spite of collisions (Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML
        2009), which helps where columns are few and is of no use at 60 bits.
    seed : int
        From 0 to 2**64 - 1: another seed, another hash.

    Returns
    -------
    scipy.sparse.csr_array of float32, shape (rows, 2**bits)
        With int64 indices, columns ascending and distinct in a row. Never ask it for anything a column: with
        2**60 of them ``x.sum(axis=0)``, ``x.T`` or ``x.tocsc()`` would take all memory there is.

    Raises
    ------
    KindError
        If a record is a single string, a token is neither str nor bytes, or a value is no number; naming
        the row.
    NonFiniteError
        On NaN or infinity.
    ArgumentError
        On lone surrogates, and on sums beyond float32.

    Notes
    -----
    The column is the highest `bits` bits of XXH64 (Collet's xxHash), the sign its lowest: the same in every
    process, on every machine and version of Python.

    Features that share a column are added up. Among n features about n**2 / 2**(bits + 1) pairs do (the
    birthday bound): at 60 bits a million features have one colliding pair with probability 4e-7, a hundred
    million with 0.4 %, a billion 0.35. At 20 bits a million features leave hardly one alone.

    Examples
    --------
    >>> from gbnn.data import hash_features
    >>> x = hash_features([["red", "round", "red"], {"weight": 1.5, "shape": "round"}, []])
    >>> x.shape == (3, 2**60), x.data.tolist()  # in each row by column, that is by hash
    (True, [1.0, 2.0, 1.5, 1.0])
    >>> hash_features([{"shape": "round"}], bits=8) != hash_features([["shape=round"]], bits=8)
    <Compressed Sparse Row sparse array of dtype 'bool'
        with 0 stored elements and shape (1, 256)>
    """
    bits, signed, seed = _checked(bits, signed, seed)
    stream = as_stream("records", records, "records")
    return csr(_blocks(stream, BLOCK, bits, signed, seed), 2**bits)


def hash_batches(
    records: Any, batch_size: int = 128, bits: int = 60, *, signed: bool = False, seed: int = 0
) -> Iterator[Any]:
    """Yield `hash_features` of `batch_size` records after the other, the last may be fewer.

    Only one batch is in memory, however many records there are.

    Parameters
    ----------
    records : iterable of records
        As for `hash_features`; such as a generator that reads a file.
    batch_size : int
        Rows in a batch.
    bits, signed, seed
        As for `hash_features`.

    Yields
    ------
    scipy.sparse.csr_array of float32, shape (batch_size, 2**bits)

    Raises
    ------
    KindError, ArgumentError, NonFiniteError
        As `hash_features`; rows are counted from the first record on.

    Examples
    --------
    >>> from gbnn.data import hash_batches
    >>> [x.nnz for x in hash_batches((["id", str(n)] for n in range(5)), 2)]
    [4, 4, 2]
    """
    bits, signed, seed = _checked(bits, signed, seed)
    size = check_int("batch_size", batch_size, 1)
    stream = as_stream("records", records, "records")
    return (csr([block], 2**bits) for block in _blocks(stream, size, bits, signed, seed))


def _checked(bits: int, signed: bool, seed: int) -> tuple[int, bool, int]:
    return check_int("bits", bits, 1, 60), check_bool("signed", signed), check_int("seed", seed, 0, 2**64 - 1)


def _blocks(stream: Iterator[Any], size: int, bits: int, signed: bool, seed: int) -> Iterator[Block]:
    first = 0
    for records in in_blocks(stream, size):
        (data, stops), numbers, ends = _flat(records, first)
        hashes = np.empty(stops.size, dtype=np.uint64)
        hash_spans(data, stops, np.uint64(seed), hashes)
        if signed:
            numbers *= 1 - 2.0 * (hashes & np.uint64(1))
        columns = (hashes >> np.uint64(64 - bits)).astype(np.int64)
        add_up(ends.copy(), columns, numbers, ends)
        filled = ends[-1]
        with np.errstate(over="ignore"):
            values = numbers[:filled].astype(np.float32)
        if not np.isfinite(values).all():
            row = first + int(np.searchsorted(ends, np.argmin(np.isfinite(values)), side="right"))
            raise ArgumentError(f"records[{row}]", "sums within float32's range", "one beyond it")
        columns = columns[:filled]
        keep = values != 0  # sums, or what is too small for float32, may be 0
        if keep.all():
            yield Block(columns.copy(), values, ends)
        else:
            yield Block(columns[keep], values[keep], np.append(0, np.cumsum(keep))[ends])
        first += len(records)


def _flat(records: list[Any], first: int) -> tuple[tuple[Array, Array], Array, Array]:
    """Return the bytes of all tokens and where they stop, what each is worth, and where each record ends."""
    plain = _plain(records)  # what is most usual takes no step in Python a token
    if plain is not None:
        return plain
    names: list[bytes] = []
    numbers: list[float] = []
    stops: list[int] = []
    for row, record in enumerate(records, first):
        _take(f"records[{row}]", record, names, numbers)
        stops.append(len(names))
    return joined(names), np.array(numbers, dtype=np.float64), np.array(stops, dtype=np.int64)


def _plain(records: list[Any]) -> tuple[tuple[Array, Array], Array, Array] | None:
    """Return what `_flat` does if all tokens are str, and all values plain numbers but 0; else None."""
    kinds = set(map(type, records))
    if not (kinds <= {list, tuple} or kinds == {dict}):
        return None
    tokens = list(chain.from_iterable(records))
    if not set(map(type, tokens)) <= {str}:
        return None
    numbers = np.ones(len(tokens))
    try:
        if kinds == {dict}:
            values = list(chain.from_iterable(map(dict.values, records)))
            if not set(map(type, values)) <= {int, float, np.float32, np.float64}:
                return None
            numbers = np.array(values, dtype=np.float64)
            if not (np.isfinite(numbers) & (numbers != 0)).all():
                return None
        ends = np.cumsum(np.fromiter(map(len, records), np.int64, len(records)))
        return texts_joined(tokens), numbers, ends
    except (UnicodeEncodeError, OverflowError):
        return None  # found again one by one, and the row with it


def _take(where: str, record: Any, names: list[bytes], numbers: list[float]) -> None:
    """Append what one record holds."""
    items = record.items() if isinstance(record, Mapping) else as_stream(where, record, "tokens")
    for item in items:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise KindError(where, "tokens or pairs (token, number)", f"a tuple of {len(item)}")
            name, value = as_utf8(where, item[0]), item[1]
            if isinstance(value, str | bytes):
                name, value = name + b"=" + as_utf8(f"{where}, {item[0]!r}", value), 1.0
            else:
                value = _number(f"{where}, {item[0]!r}", value)
        else:
            name, value = as_utf8(where, item), 1.0
        if value != 0:
            names.append(name)
            numbers.append(value)


def _number(where: str, value: Any) -> float:
    if not isinstance(value, _NUMBERS):
        raise KindError(where, "a number or a string", f"{value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ArgumentError(where, "a number within float32's range", "a larger one") from None
    if number - number != 0:  # NaN and infinity only
        raise NonFiniteError(where, "a finite number", number)
    return number
