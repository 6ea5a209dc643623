"""DEEP-R's random walk, and the edges that change their sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.networks import random_site

from gbnn.errors import GbnnError
from gbnn.topology import Clock, Site, always, constant, deep_r, random_walk, sign_flip

Array = np.ndarray[Any, Any]


def layer(nnz: int = 4000) -> Site:
    site = random_site(np.random.default_rng(1), (100, 100), nnz, index=0, count=1, dtype=np.float64)
    site.weights.assign(np.random.default_rng(2).choice([-1.0, 1.0], nnz))
    return site


def test_the_pull_is_towards_zero_and_the_noise_has_its_variance() -> None:
    site, rate, l1, temperature = layer(), 0.1, 0.5, 0.002
    before = site.weights.values.copy()
    random_walk(rate, l1, temperature)(site, Clock(0), np.random.default_rng(3))
    moved = (site.weights.values - before) * np.sign(before)
    assert moved.mean() == pytest.approx(-rate * l1, abs=0.002)
    assert moved.std() == pytest.approx(np.sqrt(2 * rate * temperature), rel=0.05)


def test_the_temperature_of_the_authors_code() -> None:
    one, other = layer(), layer()
    random_walk(0.1, 0.0)(one, Clock(0), np.random.default_rng(3))
    random_walk(0.1, 0.0, 0.1 / 210)(other, Clock(0), np.random.default_rng(3))
    assert np.array_equal(one.weights.values, other.weights.values)


def test_a_rate_over_time() -> None:
    one, other = layer(), layer()
    random_walk(lambda step: 0.1 / (step + 1), 0.2, 0.0)(one, Clock(4), np.random.default_rng(3))
    random_walk(0.02, 0.2, 0.0)(other, Clock(0), np.random.default_rng(3))
    assert np.array_equal(one.weights.values, other.weights.values)


def test_edges_that_change_their_sign_go_and_new_ones_draw_theirs() -> None:
    site, rng, recipe = layer(), np.random.default_rng(5), deep_r(0.1, l1=0.0, temperature=2.0)
    recipe.watch([site], Clock(0), rng)
    signs, values = site.memory.edges["sign"].copy(), site.weights.values.copy()
    gone = np.flatnonzero(signs * values < 0)
    assert 0 < gone.size < 4000
    assert np.array_equal(sign_flip(site, 0.0, rng), gone)
    (done,) = recipe.apply([site], Clock(0), rng)
    assert (done.change.dropped, done.change.grown) == (gone.size, gone.size)
    new = done.change.new
    assert not site.weights.values[new].any()
    assert not site.memory.edges["sign"][new].any()
    kept = done.change.origin >= 0
    assert np.array_equal(site.memory.edges["sign"][kept], signs[done.change.origin[kept]])
    recipe.watch([site], Clock(1), rng)
    drawn = site.memory.edges["sign"][new]
    assert set(drawn) == {-1, 1}
    assert abs(drawn.mean()) < 0.2
    assert np.array_equal(site.memory.edges["sign"][kept], signs[done.change.origin[kept]])


def test_it_is_due_at_every_step_and_has_no_fraction() -> None:
    recipe = deep_r(0.1)
    assert recipe.when is always
    assert recipe.fraction(Clock(3)) == constant(0.0)(Clock(3)) == 0.0
    assert not recipe.keep_regrown


@pytest.mark.parametrize("arguments", [(-0.1,), (0.1, -1.0), (0.1, 0.0, -1.0), ("a",)])
def test_bad_arguments(arguments: Any) -> None:
    with pytest.raises(GbnnError):
        random_walk(*arguments)
