from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher
from support.hashing import as_dicts, gram, xxh64
from support.memory import peak_while

from gbnn.data import hash_batches, hash_features
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.rows import SparseRows

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tokens = st.one_of(texts, st.binary(max_size=12), st.sampled_from(["a", "b", "c"]))
numbers = st.one_of(st.integers(-9, 9), st.floats(-1e6, 1e6, width=32), st.booleans())
values = st.one_of(numbers, texts, st.binary(max_size=5))
records = st.lists(
    st.one_of(
        st.lists(texts),
        st.lists(st.sampled_from(["a", "b", "c"]), max_size=60),
        st.dictionaries(texts, numbers.filter(bool)),
        st.dictionaries(tokens, values),
        st.lists(st.one_of(tokens, st.tuples(tokens, values))),
    ),
    max_size=8,
)


def as_bytes(token):
    return token if isinstance(token, bytes) else token.encode()


def defined(record, bits, signed, seed):
    """Column -> sum, by the docstring."""
    sums = defaultdict(float)
    for item in record.items() if isinstance(record, dict) else record:
        token, value = item if isinstance(item, tuple) else (item, 1)
        name = as_bytes(token)
        if isinstance(value, str | bytes):
            name, value = name + b"=" + as_bytes(value), 1
        if value != 0:
            key = xxh64(name, seed)
            sums[key >> (64 - bits)] += float(value) * (1 - 2 * (key & 1) if signed else 1)
    return {column: float(value) for column, total in sums.items() if (value := np.float32(total)) != 0}


@settings(deadline=None)
@given(records, st.sampled_from([1, 3, 20, 60]), st.booleans(), st.sampled_from([0, 1, 2**64 - 1]))
def test_is_the_definition(records, bits, signed, seed):
    x = hash_features(records, bits, signed=signed, seed=seed)
    assert x.shape == (len(records), 2**bits)
    assert (x.dtype, x.indices.dtype, x.indptr.dtype) == (np.float32, np.int64, np.int64)
    assert as_dicts(x) == [defined(record, bits, signed, seed) for record in records]


def test_columns_never_change():
    # Anyone's saved model depends on them.
    x = hash_features([["red"], [("Größe", 2)], [b"\xff\x00"]])
    assert x.indices.tolist() == [945043763308152406, 967591429636939567, 158368350500729535]
    assert hash_features([["red"]], 8, seed=7).indices.tolist() == [212]


@pytest.mark.parametrize("kind", ["string", "pair", "dict"])
def test_as_scikit_learn_but_for_the_columns(kind):
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(50)]
    rows = [list(rng.choice(words, 30)) for _ in range(20)]
    if kind == "pair":
        rows = [[(str(w), float(rng.integers(-2, 3))) for w in row] for row in rows]
    elif kind == "dict":
        rows = [{str(w): str(rng.integers(3)) if k % 2 else 1.5 for k, w in enumerate(row)} for row in rows]
    else:
        rows = [list(map(str, row)) for row in rows]
    theirs = FeatureHasher(2**18, input_type=kind, alternate_sign=False).transform(rows)
    ours = hash_features(rows)
    np.testing.assert_allclose(gram(ours), (theirs @ theirs.T).toarray(), rtol=1e-5)


def test_signed_inner_products_are_unbiased():
    a = [[f"a{k}" for k in range(40)]]
    b = [[f"b{k}" for k in range(40)]]
    products = {True: [], False: []}
    for signed, found in products.items():
        for seed in range(300):
            x, y = (hash_features(r, 6, signed=signed, seed=seed).todense() for r in (a, b))
            found.append((x @ y.T).item())
    # Nothing is shared: 0 but for collisions, of which 40 * 40 / 64 = 25 are to be expected.
    assert abs(np.mean(products[True])) < 1.5
    assert np.mean(products[False]) == pytest.approx(25, rel=0.1)


def test_long_rows_add_in_the_order_they_come():
    row = [("a", 1e16), *[(f"t{k}", 1.0) for k in range(50)], ("a", 1.0), ("a", -1e16), ("a", 2.0)]
    x = as_dicts(hash_features([row]))[0]
    assert sorted(x.values()) == [1.0] * 50 + [2.0]  # 1e16 + 1 is 1e16


def test_generators_and_iterables_of_all_kinds():
    expected = as_dicts(hash_features([["a", "b"], ["a"]]))
    for rows in (map(iter, (["a", "b"], ["a"])), (("a", "b"), ("a",)), [{"b", "a"}, np.array(["a"])]):
        assert as_dicts(hash_features(rows)) == expected


def test_more_records_than_a_block():
    rows = [["a", str(k)] for k in range(10_000)]
    x = hash_features(iter(rows))
    assert x.shape[0] == 10_000
    np.testing.assert_array_equal(x.indices[-2:], hash_features(rows[-1:]).indices)


def test_no_records_and_empty_ones():
    assert hash_features([]).shape == (0, 2**60)
    assert hash_features([[], {}, ()]).indptr.tolist() == [0, 0, 0, 0]
    assert list(hash_batches([])) == []


def test_becomes_a_batch_of_activations():
    assert SparseRows.of(hash_features([["a"], []])).shape == (2, 2**60)


@pytest.mark.parametrize(
    ("bad", "error", "where"),
    [
        ("one text", KindError, "records"),
        (None, KindError, "records"),
        ([["a"], "text"], KindError, r"records\[1\]"),
        ([["a"], None], KindError, r"records\[1\]"),
        ([["a"], ["b", None]], KindError, r"records\[1\]"),
        ([["a"], [5]], KindError, r"records\[1\]"),
        ([["a"], [("a", 1, 2)]], KindError, r"records\[1\]"),
        ([["a"], {5: 1.0}], KindError, r"records\[1\]"),
        ([["a"], {"b": None}], KindError, r"records\[1\], 'b'"),
        ([["a"], {"b": [1]}], KindError, r"records\[1\], 'b'"),
        ([["a"], {"b": 1j}], KindError, r"records\[1\], 'b'"),
        ([{"a": 1.0}, {"b": math.nan}], NonFiniteError, r"records\[1\], 'b'"),
        ([{"a": 1.0}, {"b": np.float32(np.inf)}], NonFiniteError, r"records\[1\], 'b'"),
        ([{"a": 1.0}, {"b": 10**400}], ArgumentError, r"records\[1\], 'b'"),
        ([{"a": 1.0}, {}, {"b": 1e300}], ArgumentError, r"records\[2\]"),
        ([["a"], ["ok", "\ud800"]], ArgumentError, r"records\[1\]"),
        ([["a"], [("a", "\udfff")]], ArgumentError, r"records\[1\], 'a'"),
    ],
)
def test_bad_records(bad, error, where):
    with pytest.raises(error, match=where):
        hash_features(bad)
    with pytest.raises(error, match=where):
        list(hash_batches(bad, 1))


@pytest.mark.parametrize(
    "bad",
    [{"bits": 0}, {"bits": 61}, {"bits": 2.0}, {"signed": 1}, {"seed": -1}, {"seed": 2**64}, {"seed": None}],
)
def test_bad_options(bad):
    with pytest.raises(GbnnError, match=next(iter(bad))):
        hash_features([["a"]], **bad)
    with pytest.raises(GbnnError, match=next(iter(bad))):
        hash_batches([["a"]], **bad)  # at once, not at the first batch


@settings(deadline=None)
@given(records, st.integers(1, 5))
def test_batches_are_the_rows(records, size):
    batches = list(hash_batches(iter(records), size, 20))
    assert [x.shape[0] for x in batches[:-1]] == [size] * (len(batches) - 1)
    assert [row for x in batches for row in as_dicts(x)] == as_dicts(hash_features(records, 20))


def test_memory_does_not_grow_with_the_number_of_records():
    def run(rows):
        made = ([f"t{k % 97}", f"u{k % 89}"] for k in range(rows))
        return peak_while(lambda: sum(x.nnz for x in hash_batches(made, 200)))

    run(1000)
    (few, _), (many, nnz) = run(2_000), run(40_000)
    assert nnz == 80_000
    assert many < 2 * few  # holding all rows would take 20 times as much


def test_what_is_worth_nothing_is_left_out():
    x = hash_features([[("a", 1), ("a", -1), ("b", 2)], [("a", 1e-60)], [("c", 1)]])
    assert x.nnz == 2
    np.testing.assert_array_equal(np.diff(x.indptr), [1, 0, 1])
    np.testing.assert_array_equal(x.data, [2, 1])
