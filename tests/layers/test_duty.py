"""Duty cycles against the plain running mean of nupic.torch, over the samples seen."""

from __future__ import annotations

import numpy as np
import pytest
from support.memory import peak_while

from gbnn.layers import duty
from gbnn.layers.duty import count_winners, duty_cycles
from gbnn.rows import SparseRows


def start(slots):
    return np.zeros(slots), np.array([0.0, 1.0])


def winners(rng, batch, features):
    dense = rng.standard_normal((batch, features))
    dense[rng.random(dense.shape) < 0.6] = 0
    return dense


class Plain:
    """As the published code computes it, on an array of all neurons."""

    def __init__(self, features, period):
        self.mean, self.seen, self.period = np.zeros(features), 0, period

    def add(self, dense):
        batch = len(dense)
        self.seen += batch
        period = min(self.period, self.seen)
        self.mean = (self.mean * (period - batch) + (dense > 0).sum(axis=0)) / period


@pytest.mark.parametrize("period", [8, 50, 1000])
@pytest.mark.parametrize("slots", [12, 40])
def test_equals_the_plain_running_mean(period, slots):
    rng = np.random.default_rng(0)
    state, plain = start(slots), Plain(12, period)
    for batch in (8, 8, 3, 1, 8, 5, 7, 8):
        dense = winners(rng, batch, 12)
        count_winners(*state, SparseRows.from_dense(dense), period)
        plain.add(dense)
        np.testing.assert_allclose(duty_cycles(*state, None, 12), plain.mean, rtol=1e-12, atol=1e-15)
    some = np.array([3, 0, 11, 3])
    np.testing.assert_array_equal(duty_cycles(*state, some, 12), duty_cycles(*state, None, 12)[some])


def test_a_batch_longer_than_the_period_is_all_that_counts():
    state = start(3)
    count_winners(*state, SparseRows.from_dense(np.ones((4, 3))), 2)
    dense = np.array([[1.0, 0, 0], [1, -1, 0], [0, 0, 0], [1, 0, 1]])
    count_winners(*state, SparseRows.from_dense(dense), 2)
    np.testing.assert_allclose(duty_cycles(*state, None, 3), [0.75, 0, 0.25])


def test_the_scale_does_not_underflow(monkeypatch):
    def run(small):
        monkeypatch.setattr(duty, "_SMALL", small)
        rng, state = np.random.default_rng(0), start(6)
        for _ in range(200):
            count_winners(*state, SparseRows.from_dense(winners(rng, 5, 6)), 10)
        return duty_cycles(*state, None, 6), state[1]

    often, clock = run(1e-3)
    seldom, _ = run(1e-300)
    np.testing.assert_allclose(often, seldom, rtol=1e-9)
    assert clock[1] >= 1e-3
    assert np.isfinite(often).all()


def test_never_leaves_0_to_1_over_a_long_run():
    state = start(4)
    for _ in range(30_000):
        count_winners(*state, SparseRows.from_dense([[1.0, 0, 0, 2]]), 3)
    np.testing.assert_allclose(duty_cycles(*state, None, 4), [1, 0, 0, 1], atol=1e-12)


def test_more_neurons_than_slots_share():
    state = start(2**12)
    ids = np.sort(np.random.default_rng(0).integers(0, 2**60, 50))
    y = SparseRows(np.array([0, 50]), ids, np.ones(50), (1, 2**60))
    count_winners(*state, y, 100)
    found = duty_cycles(*state, ids, 2**60)
    assert (found >= 1).all()  # no duty cycle is lost
    assert (found == 1).sum() > 40  # and few are shared, though the ids are of any size
    others = duty_cycles(*state, np.arange(1000), 2**60)
    assert (others == 0).mean() > 0.95  # neighbours do not fall together
    assert duty_cycles(*start(7), None, 9).shape == (9,)


def test_a_step_costs_the_active_entries():
    state = start(2**20)
    y = SparseRows(np.array([0, 2]), np.array([5, 2**40]), np.ones(2), (1, 2**60))
    count_winners(*state, y, 100)
    peak, _ = peak_while(lambda: (count_winners(*state, y, 100), duty_cycles(*state, y.columns, 2**60)))
    assert peak < 20_000
