"""Rules that go by a limit: against loops over neurons and signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sites import COARSE, dense, site_of, some_site

from gbnn.errors import GbnnError, KindError, NonFiniteError
from gbnn.topology import Site
from gbnn.topology.prune.limits import below, below_neuron, sign_flip
from gbnn.topology.scores import neuron_strength, size
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

patient = settings(deadline=None, max_examples=60)  # other work may keep the cores busy
RNG = np.random.default_rng(0)


@patient
@given(some_site(), st.sampled_from([-1.0, 0.0, 0.5, 0.7, 1.0, 9.0]), st.floats(0, 1))
def test_below_is_a_comparison(site: Site, limit: float, fraction: float) -> None:
    expected = [k for k, w in enumerate(site.weights.values) if abs(w) < limit]
    assert below(limit)(site, fraction, RNG).tolist() == expected
    strong = [k for k, s in enumerate(neuron_strength(site)) if s < limit]
    assert below(limit, neuron_strength)(site, fraction, RNG).tolist() == strong


@patient
@given(
    some_site(),
    st.one_of(st.sampled_from([0.0, 10.0, 25.0, 50.0, 99.0, 100.0]), st.floats(0, 100)),
    st.floats(0, 1),
)
def test_below_neuron_is_the_percentile_of_all_sums(site: Site, percentile: float, fraction: float) -> None:
    w = dense(site, site.weights.values)
    strength = np.nansum(np.abs(w), axis=0)
    limit = np.percentile(strength, percentile)
    near = np.isclose(strength, limit, rtol=1e-12, atol=0)  # NumPy's interpolation may round the other way
    gone = below_neuron(percentile)(site, fraction, RNG)
    assert gone.dtype.kind == "i"
    assert (np.diff(gone) > 0).all()
    for j in range(site.weights.out_features):
        into = np.flatnonzero(site.weights.targets == j)
        assert np.isin(into, gone).all() or not np.isin(into, gone).any()
        if into.size and not near[j]:
            assert (into[0] in gone) == (strength[j] < limit)


@pytest.mark.parametrize(
    ("percentile", "weak"),
    [
        (0, [0]),
        (24, [0]),
        (25, [0, 1]),
        (49, [0, 1]),
        (50, [0, 1, 2]),
        (99.9, [0, 1, 2, 3]),
        (100, [0, 1, 2, 3, 4]),
    ],
)
def test_below_neuron_at_and_between_neurons(percentile: float, weak: list[int]) -> None:
    site = Site("w", Weights.from_dense(np.array([[1.0, 2.0, 0.0, -4.0, 5.0], [0.0, 0.0, -3.0, 0.0, 0.0]])))
    gone = below_neuron(percentile)(site, 0.0, RNG)
    assert sorted(site.weights.targets[gone].tolist()) == weak


def test_below_neuron_counts_neurons_without_edges() -> None:
    w = Weights.from_coo([0, 5, 2**60 - 1], [0, 7, 7], [1.0, 1.0, 1.0], (2**60, 2**60))
    assert below_neuron(99.99)(Site("w", w), 0.0, RNG).size == 0  # more than so many have none
    assert below_neuron(100)(Site("w", w), 0.0, RNG).tolist() == [0, 1, 2]
    few = Weights.from_coo([0, 1, 1], [0, 3, 1], [1.0, 3.0, 2.0], (2, 4))
    assert below_neuron(50)(Site("w", few), 0.0, RNG).tolist() == [0]  # 1.5, between 1 and 2; 0 is the first


@patient
@given(st.lists(st.lists(st.sampled_from(COARSE), min_size=5, max_size=5), min_size=1, max_size=6))
def test_sign_flip_remembers_the_first_sign(history: list[list[float]]) -> None:
    site, first = site_of(np.ones((5, 1))), [0.0] * 5
    for values in history:
        site.weights.assign(values)
        expected = []
        for k, w in enumerate(values):
            if first[k] == 0:
                first[k] = np.sign(w)
            elif first[k] * w < 0:
                expected.append(k)
        for _ in range(2):  # asked twice, it says the same
            assert sign_flip(site, 0.3, RNG).tolist() == expected


def test_signs_follow_their_edges_and_new_ones_have_none() -> None:
    site = Site("w", Weights.from_dense(np.array([[1.0, -1.0], [0.0, 2.0]])))
    assert sign_flip(site, 0.0, RNG).size == 0
    site.weights.assign([-1.0, -1.0, 2.0])
    assert sign_flip(site, 0.0, RNG).tolist() == [0]
    site.rewire(np.array([0]), np.array([1]), np.array([0]))  # edges: (0, 1) (1, 0) (1, 1)
    assert site.weights.values.tolist() == [-1.0, 0.0, 2.0]
    assert sign_flip(site, 0.0, RNG).size == 0
    site.weights.assign([1.0, -0.1, -2.0])
    assert sign_flip(site, 0.0, RNG).tolist() == [0, 2]  # the new edge has its first sign now
    site.weights.assign([-1.0, 0.1, 2.0])
    assert sign_flip(site, 0.0, RNG).tolist() == [1]


def test_a_sign_given_at_birth_counts() -> None:
    site = Site("w", Weights.from_dense(np.array([[1.0, -1.0]])))
    site.memory.edges["sign"] = np.array([-1, -1], dtype=np.int8)
    assert sign_flip(site, 0.0, RNG).tolist() == [0]


@pytest.mark.parametrize("rule", [below(0.5), sign_flip, below_neuron(50)])
def test_no_edges_and_no_numbers(rule: Any) -> None:
    assert rule(site_of(np.zeros((3, 2))), 0.5, RNG).tolist() == []
    site = site_of(np.ones((3, 2)))
    site.weights.assign(np.nan)
    with pytest.raises(NonFiniteError):
        rule(site, 0.5, RNG)


@pytest.mark.parametrize("value", [-1.0, 100.1, np.nan, "1", None])
def test_percentiles_that_are_none(value: Any) -> None:
    with pytest.raises(GbnnError, match="percentile"):
        below_neuron(value)


@pytest.mark.parametrize(("limit", "score"), [(np.nan, size), ("1", size), (0.5, 0.5)])
def test_limits_that_are_none(limit: Any, score: Any) -> None:
    with pytest.raises((GbnnError, KindError)):
        below(limit, score)
