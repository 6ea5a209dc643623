"""Running gradients of any edge, against a dense running mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.networks import edges_of, random_site

from gbnn.errors import ArgumentError, GbnnError
from gbnn.semirings import EdgeGradient
from gbnn.topology import Clock, Site, recent, recent_gradient, remember

Array = np.ndarray[Any, Any]
patient = settings(deadline=None)
RNG = np.random.default_rng(0)


def layer(shape: tuple[int, int] = (5, 4), nnz: int = 7) -> Site:
    return random_site(np.random.default_rng(1), shape, nnz, index=0, count=1, dtype=np.float64)


def see(site: Site, rows: int, rng: np.random.Generator) -> Array:
    """Give the layer a batch and return its dense gradient."""
    x, dy = (np.asfortranarray(rng.standard_normal((rows, n))) for n in site.weights.shape)
    site.gradient = EdgeGradient(x, dy, site.weights.edges)
    return x.T @ dy


@patient
@given(st.integers(1, 5), st.lists(st.integers(1, 6), min_size=1, max_size=12), st.floats(0.1, 1.0))
def test_it_is_the_running_sum_of_the_last_steps(steps: int, batches: list[int], decay: float) -> None:
    site, watch, rng = layer(), remember(steps), np.random.default_rng(2)
    seen: list[Array] = []
    for number, rows in enumerate(batches):
        seen.append(see(site, rows, rng))
        watch(site, Clock(number), RNG)
        expected = sum(decay**age * g for age, g in enumerate(reversed(seen[-steps:])))
        np.testing.assert_allclose(recent(site, decay).block(0, 4), expected, rtol=1e-9, atol=1e-12)


def test_sgd_momentum_but_for_the_steps_before() -> None:
    site, watch, rng = layer(), remember(40), np.random.default_rng(3)
    momentum = np.zeros(site.weights.shape)
    for number in range(60):
        momentum = 0.9 * momentum + see(site, 3, rng)
        watch(site, Clock(number), RNG)
    np.testing.assert_allclose(recent(site, 0.9).block(0, 4), momentum, atol=0.9**40 * 50)


@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_growth_takes_the_largest(decay: float) -> None:
    site, watch, rng = layer(), remember(4), np.random.default_rng(4)
    for number in range(6):
        see(site, 3, rng)
        watch(site, Clock(number), RNG)
    dropped = np.array([1, 3])
    kept = set(edges_of(site.weights)) - set(edges_of(site.weights, dropped))
    size = np.abs(recent(site, decay).block(0, 4))
    absent = [e for e in np.ndindex(*site.weights.shape) if e not in kept]
    expected = sorted(absent, key=lambda e: -size[e])[:5]
    grown = recent_gradient(decay)(site, dropped, 5, RNG)
    assert list(zip(*(a.tolist() for a in grown), strict=True)) == expected


def test_memory_is_of_the_activations() -> None:
    site = random_site(np.random.default_rng(0), (300, 200), 50, index=0, count=1, dtype=np.float32)
    see(site, 16, RNG)
    site.gradient = EdgeGradient(
        *(np.asfortranarray(RNG.random((16, n)), np.float32) for n in (300, 200)), site.weights.edges
    )
    remember(8)(site, Clock(0), RNG)
    sizes = {name: array.nbytes for name, array in site.memory.layer.items()}
    assert sizes == {
        "recent x": 8 * 16 * 300 * 4,
        "recent dy": 8 * 16 * 200 * 4,
        "recent next": 8,
        "recent step": 8,
    }


def test_nothing_remembered() -> None:
    with pytest.raises(ArgumentError, match="remember\\(\\) as each_step"):
        recent(layer())


def test_a_layer_without_derivatives_by_absent_edges() -> None:
    site = layer()
    site.gradient = np.zeros(7)
    with pytest.raises(ArgumentError, match="plus_times"):
        remember(3)(site, Clock(0), RNG)


@pytest.mark.parametrize(
    "make", [lambda: remember(0), lambda: recent_gradient(0.0), lambda: recent_gradient(1.1)]
)
def test_bad_arguments(make: Any) -> None:
    with pytest.raises(GbnnError):
        make()


def test_two_that_remember_share_the_longer_memory() -> None:
    alone, both = layer(), layer()
    for site, watches in ((alone, [remember(6)]), (both, [remember(3), remember(6)])):
        rng = np.random.default_rng(5)
        for number in range(10):
            see(site, 3, rng)
            for watch in watches:
                watch(site, Clock(number), RNG)
    np.testing.assert_allclose(recent(both, 0.9).block(0, 4), recent(alone, 0.9).block(0, 4))
