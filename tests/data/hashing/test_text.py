from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from support.hashing import as_dicts, column, counted, gram, weighed

from gbnn.data import HashingText
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.rows import SparseRows

SENTENCES = [
    "Book a flight from Köln to São Paulo, please!",
    "book a table   for two",
    "what's the weather like in new york in may",
    "a",
    "",
    "may I book the flight, the flight, the flight",
    "naïve café ångström",
]

spans = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda pair: (pair[0], pair[0] + pair[1]))
characters = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from(" \t\n\x1c\x85\u00a0\u3000aabbßΣİ中é\u0301ﬁ")
)
documents = st.lists(st.text(characters, max_size=30), max_size=5)
options = st.fixed_dictionaries(
    {
        "words": st.one_of(st.none(), spans),
        "characters": st.one_of(st.none(), spans),
        "across": st.booleans(),
        "token_pattern": st.sampled_from([r"\w+", r"(?u)\b\w\w+\b", None, r"(\w)\w*", r"[a-z ]*"]),
        "lowercase": st.booleans(),
        "form": st.sampled_from([None, "NFC", "NFD", "NFKC", "NFKD"]),
        "strip_accents": st.booleans(),
        "bits": st.sampled_from([1, 4, 60]),
        "seed": st.sampled_from([0, 1, 2**64 - 1]),
    }
).filter(lambda o: o["words"] or o["characters"])


def plain(**others):
    return HashingText(**{"tf": "count", "idf": False, "unit_length": False, **others})


@settings(deadline=None, max_examples=300)
@given(documents, options)
def test_counts_are_the_definition(texts, options):
    x = plain(**options).transform(texts)
    assert x.shape == (len(texts), 2 ** options["bits"])
    assert (x.dtype, x.indices.dtype, x.indptr.dtype) == (np.float32, np.int64, np.int64)
    assert as_dicts(x) == [dict(counted(text, **options)) for text in texts]


@settings(deadline=None)
@given(
    documents.filter(bool),
    documents,
    st.fixed_dictionaries(
        {
            "tf": st.sampled_from(["count", "binary", "log"]),
            "idf": st.booleans(),
            "min_df": st.integers(0, 3),
            "unit_length": st.booleans(),
        }
    ),
)
def test_weights_are_the_definition(texts, others, options):
    grams = {"words": (1, 2), "characters": (1, 3)}
    features = HashingText(**grams, **options).fit(texts)
    learned = [counted(text, **grams) for text in texts]
    for rows, x in ((texts, features.transform(texts)), (others, features.transform(others))):
        expected = list(weighed([counted(text, **grams) for text in rows], learned, **options))
        for ours, theirs in zip(as_dicts(x), expected, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6)


def test_columns_never_change():
    # Anyone's saved model depends on them.
    x = plain(words=(1, 2), characters=None).transform(["Red Größe"])
    assert x.indices.tolist() == sorted(column(gram) for gram in ("red", "größe", "red größe"))
    assert column("red") == 945043763308152406
    x = plain(words=None, characters=(5, 5)).transform(["Red"])
    assert x.indices.tolist() == [436273915279043925]


def test_words_and_characters_never_meet():
    words, chars = plain(words=(1, 1), characters=None), plain(words=None, characters=(1, 1), across=True)
    a, b = words.transform(["a"]), chars.transform(["a"])
    assert a.nnz == b.nnz == 1
    assert a.indices[0] != b.indices[0]


THEIRS = [
    ({"analyzer": "char_wb", "ngram_range": (1, 4)}, {"words": None, "characters": (1, 4)}),
    ({"analyzer": "char_wb", "ngram_range": (3, 7)}, {"words": None, "characters": (3, 7)}),
    ({"analyzer": "char", "ngram_range": (2, 5)}, {"words": None, "characters": (2, 5), "across": True}),
    (
        {"analyzer": "word", "ngram_range": (1, 3)},
        {"words": (1, 3), "characters": None, "token_pattern": r"(?u)\b\w\w+\b"},
    ),
    (
        {"analyzer": "word", "ngram_range": (2, 2), "token_pattern": r"\w+", "strip_accents": "unicode"},
        {"words": (2, 2), "characters": None, "strip_accents": True},
    ),
    (
        {"analyzer": "char_wb", "ngram_range": (2, 3), "strip_accents": "unicode", "lowercase": False},
        {"words": None, "characters": (2, 3), "strip_accents": True, "lowercase": False},
    ),
]


def check_equal(ours, theirs):
    assert ours.shape[0] == theirs.shape[0]
    np.testing.assert_array_equal(np.diff(ours.indptr), np.diff(theirs.indptr))
    for a, b in zip(as_dicts(ours), as_dicts(theirs.sorted_indices()), strict=True):
        np.testing.assert_allclose(sorted(a.values()), sorted(b.values()), rtol=1e-6)
    np.testing.assert_allclose(gram(ours), (theirs @ theirs.T).toarray(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("theirs", "ours"), THEIRS)
def test_as_scikit_learn_but_for_the_order_of_columns(theirs, ours):
    text = [" ".join(s.split()) for s in SENTENCES]  # theirs keeps single tabs, and spaces at the ends
    counts = CountVectorizer(**theirs)
    expected = counts.fit_transform(text)
    learned = plain(**ours, form=None, min_df=1)
    check_equal(learned.fit_transform(text), expected)
    assert learned.features_seen == len(counts.vocabulary_)
    for more_theirs, more_ours in [
        ({}, {}),
        ({"sublinear_tf": True, "norm": None}, {"tf": "log", "unit_length": False}),
        ({"binary": True, "min_df": 2}, {"tf": "binary", "min_df": 2}),
        ({"use_idf": False}, {"idf": False, "min_df": 1}),
    ]:
        vectorizer = TfidfVectorizer(**theirs, **more_theirs, dtype=np.float64)
        features = HashingText(**ours, **more_ours, form=None)
        check_equal(features.fit_transform(text), vectorizer.fit_transform(text))
        unseen = ["flight 2 köln", "qq", ""]
        check_equal(features.transform(unseen), vectorizer.transform(unseen))


def test_min_df_zero_keeps_what_was_never_seen():
    features = HashingText(min_df=0, unit_length=False, words=(1, 1), characters=None).fit(["a", "a b"])
    assert features.transform(["c"]).data.tolist() == [pytest.approx(np.log(3) + 1)]


def test_texts_that_read_the_same_are_the_same():
    x = HashingText(idf=False).transform(["Café ﬁn", "cafe\u0301  \u00a0FIN"])
    assert as_dicts(x)[0] == as_dicts(x)[1]
    y = HashingText(idf=False, strip_accents=True).transform(["Ångström", "angstrom"])
    assert as_dicts(y)[0] == as_dicts(y)[1]


def test_learning_in_parts_is_learning_at_once():
    whole, parts = HashingText().fit(SENTENCES), HashingText()
    for text in SENTENCES:
        parts.partial_fit([text])
    assert_same_state(parts, whole)
    whole.fit(SENTENCES[:2])  # forgets the rest
    assert_same_state(whole, HashingText().partial_fit(SENTENCES[:2]))
    y = whole.fit_transform(SENTENCES)
    assert_same_state(parts, whole)
    assert as_dicts(y) == as_dicts(parts.transform(SENTENCES))


def test_bytes_of_utf8_are_texts_too():
    x = HashingText(idf=False).transform(["Köln", "Köln".encode(), np.str_("Köln")])
    assert as_dicts(x)[0] == as_dicts(x)[1] == as_dicts(x)[2]


def test_no_texts_and_empty_ones():
    features = HashingText()
    with pytest.raises(ArgumentError, match="at least one text"):
        features.fit([])
    with pytest.raises(ArgumentError, match="at least one text"):
        features.fit_transform(iter([]))
    assert features.partial_fit([]).documents == 0
    assert features.fit(["", " \t\u3000"]).features_seen == 0
    assert features.transform([]).shape == (0, 2**60)
    assert features.transform(["", "a"]).indptr.tolist() == [0, 0, 0]
    assert SparseRows.of(HashingText(idf=False).transform([""])).nnz == 0


def test_long_texts_are_hashed_whole():
    text = "ab " * 50_000
    x = plain(words=(1, 1), characters=(1, 2)).transform(["x", text, "y"])
    rows = as_dicts(x)
    assert rows[1] == dict(counted(text, words=(1, 1), characters=(1, 2)))
    assert rows[2] == dict(counted("y", words=(1, 1), characters=(1, 2)))


@pytest.mark.parametrize(
    ("bad", "error", "where"),
    [
        ("one text", KindError, "texts"),
        (b"one text", KindError, "texts"),
        (None, KindError, "texts"),
        (5, KindError, "texts"),
        (["ok", None], KindError, r"texts\[1\]"),
        (["ok", 5.0], KindError, r"texts\[1\]"),
        (["ok", ["a"]], KindError, r"texts\[1\]"),
        (["ok", b"\xff"], ArgumentError, r"texts\[1\].*0xff at 0"),
        (["ok", "a\ud800"], ArgumentError, r"texts\[1\].*surrogate at 1"),
        ([*["ok"] * 9000, "\udc00"], ArgumentError, r"texts\[9000\]"),
    ],
)
def test_bad_texts(bad, error, where):
    features = HashingText().fit(["before"])
    state = features.state()
    for method in (features.fit, features.partial_fit, features.transform, features.fit_transform):
        with pytest.raises(error, match=where):
            method(bad)
    with pytest.raises(error, match=where):
        list(features.transform_stream(bad))
    assert features.documents == state["documents"]  # nothing of them was learned
    np.testing.assert_array_equal(features.state()["columns"], state["columns"])
    with pytest.raises(error, match=where):
        HashingText(words=(1, 1), characters=None, idf=False).transform(bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"bits": 0},
        {"bits": 61},
        {"seed": -1},
        {"words": (0, 1)},
        {"words": (2, 1)},
        {"words": 3},
        {"characters": (1, 2, 3)},
        {"characters": (1, 65)},
        {"characters": (1.0, 2)},
        {"across": 1},
        {"token_pattern": "("},
        {"token_pattern": "(a)(b)"},
        {"token_pattern": 5},
        {"lowercase": "yes"},
        {"form": "nfc"},
        {"strip_accents": None},
        {"tf": "sublinear"},
        {"tf": 1},
        {"tf": ["log"]},
        {"form": ["NFC"]},
        {"idf": 1},
        {"min_df": -1},
        {"min_df": 0.5},
        {"unit_length": 0},
        {"words": None, "characters": None},
    ],
)
def test_bad_options(bad):
    with pytest.raises(GbnnError, match=next(iter(bad))):
        HashingText(**bad)


def test_nothing_learned_yet():
    for features in (HashingText(), HashingText(idf=False, min_df=2)):
        with pytest.raises(ArgumentError, match="none yet"):
            features.transform(["a"])
        with pytest.raises(ArgumentError, match="none yet"):
            features.transform_stream(["a"])
    assert HashingText(idf=False).transform(["a"]).nnz > 0


# -- Saving ------------------------------------------------------------------------------------------------


def assert_same_state(a, b):
    mine, other = a.state(), b.state()
    assert (mine["options"], mine["documents"]) == (other["options"], other["documents"])
    for name in ("columns", "frequencies"):
        np.testing.assert_array_equal(mine[name], other[name])


@pytest.mark.parametrize("given", [{}, {"words": None, "bits": 8, "tf": "log", "form": None, "min_df": 2}])
def test_state_and_pickle(given):
    features = HashingText(**given).fit(SENTENCES)
    state = features.state()
    state["options"] = json.loads(json.dumps(state["options"]))
    for copy in (HashingText.from_state(state), pickle.loads(pickle.dumps(features))):
        assert_same_state(copy, features)
        assert as_dicts(copy.transform(SENTENCES)) == as_dicts(features.transform(SENTENCES))
        assert repr(copy) == repr(features)
    assert_same_state(HashingText.from_state(HashingText(**given).state()), HashingText(**given))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("columns"),
        lambda s: s.update(more=1),
        lambda s: s.update(options={"bit": 3}),
        lambda s: s.update(options=None),
        lambda s: s.update(options={**s["options"], "bits": 99}),
        lambda s: s.update(options={**s["options"], "bits": 2}),
        lambda s: s.update(documents=-1),
        lambda s: s.update(documents=1),
        lambda s: s.update(documents="7"),
        lambda s: s.update(columns=s["columns"][::-1]),
        lambda s: s.update(columns=s["columns"][:-1]),
        lambda s: s.update(columns=s["columns"].astype(float)),
        lambda s: s.update(columns=s["columns"] - s["columns"][0] - 1),
        lambda s: s.update(frequencies=s["frequencies"] * 0),
        lambda s: s.update(frequencies=s["frequencies"][None]),
    ],
)
def test_damaged_state(change):
    state = HashingText().fit(SENTENCES).state()
    change(state)
    with pytest.raises(GbnnError, match=r"state|bits"):
        HashingText.from_state(state)


def test_state_that_is_no_dict():
    with pytest.raises(KindError, match="state"):
        HashingText.from_state([1])
