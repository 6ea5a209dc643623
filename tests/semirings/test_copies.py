"""Copies and pickles of semirings, and of models that compute in them: for other threads and processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from gbnn import layers, semirings, training
from gbnn.semirings import Semiring, define

BUILT_IN = [s for name in semirings.__all__ if isinstance(s := getattr(semirings, name), Semiring)]

cubes = define(
    "cubes",
    add=lambda a, b: a + b,
    identity=0.0,
    multiply=lambda x, w: x**3 * w,
    partials=lambda x, w, y: (3 * x**2 * w, x**3),
    one=1.0,
)


@pytest.mark.parametrize("semiring", BUILT_IN, ids=str)
def test_there_is_one_of_each_built_in_semiring(semiring):
    assert pickle.loads(pickle.dumps(semiring)) is semiring
    assert copy.copy(semiring) is copy.deepcopy(semiring) is semiring


def test_a_namesake_of_a_built_in_semiring_stays_itself():
    mine = define("plus_times", lambda a, b: a + b, 0.0, lambda x, w: x * w)
    copied = pickle.loads(pickle.dumps(mine))
    assert copied is not semirings.plus_times
    assert copied.partials is None
    assert copy.deepcopy(mine) is mine


def network(semiring):
    return layers.Chain(
        layers.Linear.random(6, 9, nnz=20, seed=1, semiring=semiring),
        layers.BatchNorm(9),
        layers.Dropout(0.5, seed=2),
        layers.Tanh(),
        layers.Dense.random(9, 3),
    )


@pytest.mark.parametrize("semiring", [semirings.plus_times, semirings.log_plus, cubes], ids=str)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_of_a_model_computes_the_same_and_is_apart(semiring, copied):
    model, x = network(semiring), np.random.default_rng(0).standard_normal((5, 6))
    before = training.outputs(model, x)
    other = copied(model)
    assert np.array_equal(training.outputs(other, x), before)
    list(training.train(other, [(x, np.arange(5) % 3)]))
    assert not np.array_equal(training.outputs(other, x), before)
    assert np.array_equal(training.outputs(model, x), before)


def test_another_process_uses_a_model():
    x = np.random.default_rng(0).standard_normal((5, 6))
    models = [network(s) for s in (semirings.plus_times, semirings.min_plus, cubes)]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for model in models:
            there = pool.submit(training.outputs, model, x).result(timeout=120)
            assert np.array_equal(there, training.outputs(model, x))
