from __future__ import annotations

import threading

import numpy as np
import pytest
from support.hashing import as_dicts, counted, weighed
from support.memory import peak_while

from gbnn.data import HashingText
from gbnn.data.hashing.pool import in_order
from gbnn.errors import ArgumentError, KindError

GRAMS = {"words": (1, 2), "characters": (1, 3)}


def sentences(rows, start=0):
    for k in range(start, start + rows):
        yield f"Sentence {k % 97} of {k % 31}: größe {k % 7}"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_batches_are_the_rows(size):
    features = HashingText().fit(sentences(40))
    batches = list(features.transform_stream(sentences(40), size))
    assert [x.shape[0] for x in batches] == [min(size, 40 - k) for k in range(0, 40, size)]
    whole = features.transform(sentences(40))
    assert [row for x in batches for row in as_dicts(x)] == as_dicts(whole)


def test_learning_on_the_fly():
    features = HashingText(**GRAMS)
    texts, learned = list(sentences(10)), []
    for k, x in enumerate(features.fit_transform_stream(texts, 4)):
        rows = [counted(text, **GRAMS) for text in texts[4 * k : 4 * k + 4]]
        learned += rows
        assert features.documents == len(learned)
        for ours, theirs in zip(as_dicts(x), weighed(rows, learned), strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6)
    assert features.documents == 10
    at_once = HashingText(**GRAMS).fit(texts)
    np.testing.assert_array_equal(features.state()["frequencies"], at_once.state()["frequencies"])


def test_arguments_are_checked_at_once():
    features = HashingText(idf=False)
    for method in (features.transform_stream, features.fit_transform_stream):
        for bad in ({"batch_size": 0}, {"batch_size": None}, {"workers": 0}, {"processes": 1}):
            with pytest.raises((ArgumentError, KindError), match=next(iter(bad))):
                method(["a"], **bad)
        with pytest.raises(KindError, match="texts"):
            method("a")


@pytest.mark.parametrize("stream", ["transform_stream", "fit_transform_stream"])
@pytest.mark.parametrize("workers", [1, 2])
def test_memory_does_not_grow_with_the_number_of_texts(stream, workers):
    def run(rows):
        features = HashingText().fit(sentences(500))
        batches = getattr(features, stream)(sentences(rows), 25, workers=workers)
        return peak_while(lambda: sum(x.shape[0] for x in batches))

    run(500)
    (few, _), (many, rows) = run(500), run(5000)
    assert rows == 5000
    assert many < 2 * few  # holding all rows would take ten times as much


def test_fit_takes_memory_of_distinct_features_only():
    def run(rows):
        return peak_while(lambda: HashingText().fit(sentences(rows)).documents)

    run(1000)
    (few, _), (many, rows) = run(3000), run(9000)
    assert rows == 9000
    assert many < few * 1.3


# -- Workers -----------------------------------------------------------------------------------------------


def same(a, b):
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(a, part), getattr(b, part))


@pytest.mark.parametrize("workers", [2, 3])
def test_threads_change_nothing(workers):
    texts = list(sentences(9000))
    one, several = HashingText(), HashingText()
    same(several.fit_transform(texts, workers=workers), one.fit_transform(texts))
    same(several.transform(iter(texts), workers=workers), one.transform(texts))
    same_counts = several.fit(texts, workers=workers).state()["frequencies"]
    np.testing.assert_array_equal(same_counts, one.state()["frequencies"])


def test_processes_change_nothing_and_errors_come_through():
    texts = list(sentences(300))
    one = HashingText().fit(texts)
    batches = one.transform_stream([*texts, "\ud800"], 100, workers=2, processes=True)
    for k in range(3):
        same(next(batches), one.transform(texts[100 * k : 100 * k + 100]))
    with pytest.raises(ArgumentError, match=r"texts\[300\].*surrogate"):
        next(batches)


def test_order_is_kept_and_few_jobs_are_ahead():
    taken = []

    def jobs():
        for k in range(50):
            taken.append(k)
            yield (k,)

    gates = [threading.Event() for _ in range(50)]

    def work(k):
        if k % 2:
            gates[k].set()
        else:
            gates[k + 1].wait(5)  # each even job ends after the odd one that follows it
        return k

    for k, result in enumerate(in_order(work, jobs(), 2, False)):
        assert result == k
        assert len(taken) <= k + 7
    assert len(taken) == 50


def test_a_consumer_that_stops_leaves_no_threads():
    before = threading.active_count()
    batches = HashingText(idf=False).transform_stream(sentences(10**9), 10, workers=2)
    next(batches)
    batches.close()
    del batches
    assert threading.active_count() == before


def test_an_error_comes_in_its_place():
    batches = HashingText(idf=False).transform_stream(["a", "b", None, "c"], 1, workers=2)
    assert next(batches).shape[0] == next(batches).shape[0] == 1
    with pytest.raises(KindError, match=r"texts\[2\]"):
        next(batches)
