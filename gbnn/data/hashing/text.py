"""`HashingText`: raw text to sparse rows of hashed n-grams, TF-IDF weights learned on the fly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from gbnn.data.hashing.count import NGrams, in_cache, numbered
from gbnn.data.hashing.encode import as_stream, in_blocks
from gbnn.data.hashing.frequencies import Frequencies
from gbnn.data.hashing.pool import in_order
from gbnn.data.hashing.rows import Block, csr
from gbnn.data.hashing.saved import check_fit, checked_parts
from gbnn.data.hashing.weigh import TF, Weighting
from gbnn.errors import ArgumentError, KindError, check_bool, check_int

__all__ = ["HashingText"]


class HashingText:
    """Turn texts into sparse rows: n-grams of characters and words, addressed by hash, weighed by TF-IDF.

    There is no vocabulary: the hash of an n-gram is its column, so only document frequencies are learned,
    and nothing where there is no `idf`.

    Parameters
    ----------
    words : (int, int), optional
        N-grams of how many words, such as (1, 2) for single words and pairs; None for none.
    characters : (int, int), optional
        N-grams of how many characters, such as (1, 4); None for none.
    across : bool
        Characters across words. Without it n-grams stay inside a word and the space on each of its sides, and
        a word shorter than n counts once as a whole (scikit-learn's ``char_wb``).
    token_pattern : str, optional
        Regular expression that finds the words; with one group in brackets, the group is the word. None
        splits at white space. Characters are not affected.
    lowercase : bool
        By `str.lower`.
    form : {None, "NFC", "NFD", "NFKC", "NFKD"}
        Unicode normalization, before `lowercase`. Under NFKC, the default, what reads the same is the same.
    strip_accents : bool
        Drop combining marks of the decomposed text (NFKD) first.
    tf : {"count", "log", "binary"}
        What an n-gram that occurs c times in a text is worth: c, 1 + log(c), or 1.
    idf : bool
        Times ``log((1 + n) / (1 + df)) + 1``: n texts learned from, df of them with this n-gram.
    min_df : int, optional
        Leave out n-grams seen in fewer texts: 1 those never seen. None is 1 with `idf` and 0 without.
    unit_length : bool
        Divide each row by its Euclidean length.
    bits : int
        From 1 to 60: there are ``2**bits`` columns. N-grams that share one are added up; how many do is
        said at `hash_features`.
    seed : int
        From 0 to 2**64 - 1: another seed, another hash.

    Attributes
    ----------
    documents : int
        Number of texts learned from.
    features_seen : int
        Number of distinct columns in them.

    Raises
    ------
    ArgumentError, KindError
        On options that make no sense.

    Notes
    -----
    All white space becomes single spaces, none at the ends. A word's column is the top `bits` bits of XXH64
    of its UTF-8, and of a pair's with one space between, as for `hash_features` of the same seed;
    characters have another seed made of it. So columns are the same on all machines; `lowercase` and `form`
    are Python's, whose newer versions know more characters (those assigned since), and treat the others
    alike.

    With 60 bits and the same n-grams, rows are those of scikit-learn's TfidfVectorizer but for the order of
    columns.

    Examples
    --------
    >>> from gbnn.data import HashingText
    >>> texts = ["book a flight", "book a table", "tell me a joke"]
    >>> features = HashingText(words=(1, 2), characters=(1, 4))
    >>> x = features.fit_transform(texts)
    >>> x.shape == (3, 2**60), x.nnz == features.transform(texts).nnz
    (True, True)
    >>> HashingText(characters=None, words=(1, 1), idf=False, tf="count", unit_length=False).transform(
    ...     ["to be or not to be", ""]
    ... ).sum(axis=1)
    array([6., 0.], dtype=float32)
    """

    def __init__(
        self,
        *,
        words: tuple[int, int] | None = (1, 1),
        characters: tuple[int, int] | None = (1, 4),
        across: bool = False,
        token_pattern: str | None = r"\w+",  # noqa: S107 (no password)
        lowercase: bool = True,
        form: str | None = "NFKC",
        strip_accents: bool = False,
        tf: str = "count",
        idf: bool = True,
        min_df: int | None = None,
        unit_length: bool = True,
        bits: int = 60,
        seed: int = 0,
    ) -> None:
        self._n_grams = NGrams.checked(
            bits, words, characters, across, token_pattern, lowercase, form, strip_accents, seed
        )
        if not isinstance(tf, str) or tf not in TF:
            raise ArgumentError("tf", f"one of {sorted(TF)}", repr(tf))
        idf = check_bool("idf", idf)
        least = int(idf) if min_df is None else check_int("min_df", min_df, 0)
        self._weighting = Weighting(tf, idf, least, check_bool("unit_length", unit_length))
        self._seen = Frequencies()
        self.documents = 0

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"HashingText({options})"

    @property
    def options(self) -> dict[str, Any]:
        """What the constructor was given: plain numbers, strings, lists and None, as JSON has them."""
        options = {**asdict(self._n_grams), **asdict(self._weighting)}
        for name in ("words", "characters"):
            options[name] = list(options[name]) if options[name][1] else None
        return options

    @property
    def features_seen(self) -> int:
        """Number of distinct columns in the texts learned from."""
        return len(self._seen)

    # -- Learning and transforming -------------------------------------------------------------------------

    def fit(self, texts: Any, y: Any = None, *, workers: int = 1, processes: bool = False) -> HashingText:
        """Learn document frequencies from these texts alone; returns itself.

        Parameters
        ----------
        texts : iterable of str, or bytes of UTF-8
        y : ignored
            For pipelines.
        workers, processes
            As for `transform`.

        Raises
        ------
        ArgumentError, KindError
            As `transform`, and if there is no text. What was learned before is then kept.
        """
        seen, documents = self._frequencies(texts, workers, processes)
        return self._become(seen, documents)

    def partial_fit(
        self, texts: Any, y: Any = None, *, workers: int = 1, processes: bool = False
    ) -> HashingText:
        """Learn document frequencies from these texts, too; returns itself.

        Takes memory of the distinct n-grams seen, not of the texts. Where one is refused, nothing is learned.
        """
        seen, documents = self._frequencies(texts, workers, processes)
        self._seen.add(*seen.items())
        self.documents += documents
        return self

    def transform(self, texts: Any, *, workers: int = 1, processes: bool = False) -> Any:
        """Turn texts into rows.

        Parameters
        ----------
        texts : iterable of str, or bytes of UTF-8
            Possibly a generator.
        workers : int
            How many blocks of texts are worked on at a time. The result does not depend on it. The compiled
            loops, which take most of the time, run beside each other in threads.
        processes : bool
            Processes (spawned, so guard the main module) instead of threads: worthwhile only for very many
            texts with `words` by a pattern or with much beyond ASCII, where Python's own part takes most of
            the time.

        Returns
        -------
        scipy.sparse.csr_array of float32, shape (rows, 2**bits)
            With int64 indices, columns ascending and distinct in a row; a text without n-grams is an empty
            row.

        Raises
        ------
        KindError
            If a text is neither str nor bytes, naming its row.
        ArgumentError
            On bytes that are no UTF-8 and lone surrogates, naming the row; where frequencies are needed and
            none have been learned.
        """
        self._check_learned()
        blocks = map(self._weighed, self._counted(texts, workers, processes))
        return csr(blocks, 2**self._n_grams.bits)

    def fit_transform(self, texts: Any, y: Any = None, *, workers: int = 1, processes: bool = False) -> Any:
        """Learn from these texts alone, then turn them into rows; each text is hashed once."""
        seen, blocks = Frequencies(), []
        for block in self._counted(texts, workers, processes):
            seen.add(block.columns)
            blocks.append(block)
        self._become(seen, sum(block.ends.size for block in blocks))
        return csr(map(self._weighed, blocks), 2**self._n_grams.bits)

    def transform_stream(
        self, texts: Any, batch_size: int = 128, *, workers: int = 1, processes: bool = False
    ) -> Iterator[Any]:
        """Yield `transform` of `batch_size` texts after the other, the last may be fewer.

        Only a few batches are in memory, however many texts there are.

        Examples
        --------
        >>> from gbnn.data import HashingText
        >>> texts = (f"number {n}" for n in range(5))
        >>> [len(x.indptr) - 1 for x in HashingText(idf=False).transform_stream(texts, 2)]
        [2, 2, 1]
        """
        self._check_learned()
        size = check_int("batch_size", batch_size, 1)
        blocks = self._counted(texts, workers, processes, size)
        return (csr([self._weighed(block)], 2**self._n_grams.bits) for block in blocks)

    def fit_transform_stream(
        self, texts: Any, batch_size: int = 128, *, workers: int = 1, processes: bool = False
    ) -> Iterator[Any]:
        """Yield rows of `batch_size` texts, weighed by what has been learned up to and with them.

        For a single pass over texts that never end: early rows are weighed by rough frequencies. With
        `min_df` above 1, they lack what has not been seen so often yet. What was learned before counts,
        too.
        """
        size = check_int("batch_size", batch_size, 1)
        blocks = self._counted(texts, workers, processes, size)
        return (csr([self._weighed(self._learn(block))], 2**self._n_grams.bits) for block in blocks)

    # -- Saving --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all there is to save.

        Returns
        -------
        dict
            ``options`` (a dict that JSON can hold), ``documents`` (int), ``columns`` and ``frequencies``
            (ndarray of int64, shape (features_seen,)): the columns seen, ascending, and the number of texts
            with each.

        Examples
        --------
        >>> from gbnn.data import HashingText
        >>> features = HashingText(bits=20).fit(["a", "b a"])
        >>> HashingText.from_state(features.state()).documents
        2
        """
        columns, frequencies = self._seen.sorted()
        return {
            "options": self.options,
            "documents": self.documents,
            "columns": columns,
            "frequencies": frequencies,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HashingText:
        """Make it of what `state` returned, checked.

        Raises
        ------
        KindError, ArgumentError
            If it is something else, or does not fit together.
        """
        options, documents, columns, frequencies = checked_parts(state)
        try:
            made = cls(**options)
        except KindError:  # a TypeError, too
            raise
        except TypeError as error:
            raise KindError("state['options']", "options of HashingText", error) from None
        check_fit(documents, columns, frequencies, made._n_grams.bits)
        made.documents = documents
        made._seen.add(columns, frequencies)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return HashingText.from_state, (self.state(),)

    # -- Inside --------------------------------------------------------------------------------------------

    def _frequencies(self, texts: Any, workers: int, processes: bool) -> tuple[Frequencies, int]:
        seen, documents = Frequencies(), 0
        for block in self._counted(texts, workers, processes):
            seen.add(block.columns)
            documents += block.ends.size
        return seen, documents

    def _become(self, seen: Frequencies, documents: int) -> HashingText:
        if documents == 0:
            raise ArgumentError("texts", "at least one text", "none")
        self._seen, self.documents = seen, documents
        return self

    def _check_learned(self) -> None:
        if self._weighting.needs_frequencies and self.documents == 0:
            raise ArgumentError(
                "transform", "document frequencies: fit, or idf=False and min_df=0", "none yet"
            )

    def _counted(self, texts: Any, workers: int, processes: bool, rows: int | None = None) -> Iterator[Block]:
        """Count blocks of exactly `rows` texts but for the last, or of what fits in cache."""
        workers, processes = check_int("workers", workers, 1), check_bool("processes", processes)
        stream = as_stream("texts", texts, "texts")
        jobs = in_cache(stream) if rows is None else in_blocks(stream, rows)
        return in_order(self._n_grams.count, numbered(jobs), workers, processes)

    def _learn(self, block: Block) -> Block:
        self._seen.add(block.columns)
        self.documents += block.ends.size
        return block

    def _weighed(self, block: Block) -> Block:
        return self._weighting.weigh(block, self._seen, self.documents)
