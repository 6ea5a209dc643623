"""Goals, schedules of shares and densities, and several rewirings in turn, by value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.networks import edges_of, networks, random_site

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.topology import (
    Clock,
    Rewirer,
    Rewiring,
    Site,
    always,
    constant,
    cosine,
    cubic,
    from_start,
    gradient,
    in_turn,
    inverse_power,
    linear,
    magnitude,
    never,
    piecewise,
    random,
    rates,
    relative,
    sigmoid,
    to_density,
)

patient = settings(deadline=None)
HALF = Clock(step=50, total_steps=100)


def layer(nnz: int = 20) -> Site:
    return random_site(np.random.default_rng(0), (10, 10), nnz, index=0, count=1, dtype=np.float64)


# -- Over time -----------------------------------------------------------------------------------------------

FORMULAS: dict[str, tuple[Callable[[Clock], float], Callable[[float], float]]] = {
    "cosine": (cosine(0.4, 80), lambda t: 0.2 * (1 + math.cos(math.pi * t))),
    "cosine to 0.1": (cosine(0.4, 80, low=0.1), lambda t: 0.1 + 0.15 * (1 + math.cos(math.pi * t))),
    "linear": (linear(0.4, 80), lambda t: 0.4 * (1 - t)),
    "linear to 0.1": (linear(0.4, 80, low=0.1), lambda t: 0.4 - 0.3 * t),
    "inverse power": (inverse_power(0.4, 80), lambda t: 0.4 * (1 - t) ** 3),
    "inverse power 1.5": (inverse_power(0.4, 80, power=1.5), lambda t: 0.4 * (1 - t) ** 1.5),
    "cubic": (cubic(0.9, 0.2, end=80), lambda t: 0.2 + 0.7 * (1 - t) ** 3),
    "cubic up": (cubic(0.2, 0.9, end=80), lambda t: 0.9 - 0.7 * (1 - t) ** 3),
    "sigmoid": (
        sigmoid(0.9, 0.2, end=80),
        lambda t: (
            0.2
            + 0.7
            * (1 / (1 + math.exp(12 * (t - 0.5))) - 1 / (1 + math.exp(6)))
            / (1 / (1 + math.exp(-6)) - 1 / (1 + math.exp(6)))
        ),
    ),
    "constant": (constant(0.4), lambda t: 0.4),
}


@pytest.mark.parametrize(("schedule", "formula"), FORMULAS.values(), ids=FORMULAS)
def test_schedules_are_their_formulas(schedule: Any, formula: Any) -> None:
    for step in (0, 1, 20, 40, 79, 80, 200):
        assert schedule(Clock(step)) == pytest.approx(formula(min(1.0, step / 80)), abs=1e-12)


@pytest.mark.parametrize("make", [cubic, sigmoid])
def test_between_begin_and_end(make: Any) -> None:
    density = make(0.9, 0.2, begin=0.25, end=0.75)
    shares = [density(Clock(s, total_steps=100)) for s in (0, 25, 50, 75, 99)]
    assert shares[0] == shares[1] == 0.9
    assert 0.2 < shares[2] < 0.9
    assert shares[3] == shares[4] == 0.2


def test_an_end_before_the_beginning_is_a_step() -> None:
    density = cubic(0.9, 0.2, begin=50, end=50)
    assert [density(Clock(s)) for s in (0, 49, 50)] == [0.2, 0.2, 0.2]


def test_pieces() -> None:
    share = piecewise([0.5, 0.2, 0.1], [10, 0.5])
    shares = [share(Clock(s, total_steps=100)) for s in (0, 9, 10, 49, 50, 99)]
    assert shares == [0.5, 0.5, 0.2, 0.2, 0.1, 0.1]
    assert piecewise([0.3], [])(HALF) == 0.3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: piecewise([0.3], [10]), "values: expected 2 values, one more than steps, got 1"),
        (lambda: piecewise([1.3, 0.1], [10]), r"values\[0\]: expected a finite number"),
        (lambda: linear(1.2), "fraction: expected a finite number"),
        (lambda: cosine(0.2, low=-1.0), "low: expected a finite number"),
        (lambda: inverse_power(0.2, power=0.0), "power: expected a finite number"),
        (lambda: cubic(0.2, 0.1, end=0), "end: expected an integer"),
        (lambda: sigmoid(0.2, 0.1, steepness=0.0), "steepness: expected a finite number"),
        (lambda: from_start(1.5, constant(1.0)), "density: expected a finite number"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(GbnnError, match=message):
        make()


# -- Goals ---------------------------------------------------------------------------------------------------


def test_a_density_is_of_all_places() -> None:
    assert to_density(constant(0.355))([layer(), layer(3)], HALF) == 71


def test_from_the_start_to_a_density() -> None:
    site = layer(20)
    goal = from_start(0.6, linear(1.0, 100))
    assert [goal([site], Clock(s)) for s in (0, 25, 50, 100)] == [20, 30, 40, 60]
    site.rewire(np.arange(10), [], [])
    assert goal([site], Clock(50)) == 40  # what is remembered is the start


def test_relative_is_at_most_all_places() -> None:
    assert relative(lambda clock: 1.25)([layer(20)], HALF) == 25
    assert relative(lambda clock: 9.0)([layer(20)], HALF) == 100
    with pytest.raises(ArgumentError, match="factor"):
        relative(lambda clock: -1.0)([layer(20)], HALF)


def rewiring(**parts: Any) -> Rewiring:
    usual: dict[str, Any] = {
        "prune": magnitude,
        "grow": random,
        "when": always,
        "fraction": constant(0.0),
        "layers": lambda site: True,
    }
    return Rewiring(**usual | parts)


@patient
@given(networks(), st.floats(0, 1), st.sampled_from([0.0, 0.3, 1.0]), st.booleans(), st.integers(0, 99))
def test_any_goal_is_reached_from_any_network(
    network: list[Site], density: float, fraction: float, globally: bool, seed: int
) -> None:
    recipe = rewiring(
        fraction=constant(fraction),
        goal=to_density(constant(density)),
        rates=rates.overall() if globally else rates.equal,
    )
    kept = {s.name: dict(zip(edges_of(s.weights), s.weights.values, strict=True)) for s in network}
    now = sum(site.weights.nnz for site in network)
    changes = recipe.apply(network, HALF, np.random.default_rng(seed))
    places = sum(site.places for site in network)
    total = sum(site.weights.nnz for site in network)
    assert total == round(density * places)
    if fraction == 0.0:
        grown = sum(done.change.grown for done in changes)
        dropped = sum(done.change.dropped for done in changes)
        assert min(grown, dropped) <= (0 if globally or total >= now else len(network))
    if fraction == 0.0 and globally and total <= now:
        # Exactly the edges of smallest |w| of all layers went.
        went = [
            abs(value)
            for site in network
            for edge, value in kept[site.name].items()
            if edge not in set(edges_of(site.weights))
        ]
        stay = [abs(value) for site in network for value in site.weights.values]
        assert max(went, default=0.0) <= min(stay, default=np.inf)


@pytest.mark.parametrize("goal", [-1, 101, 1.5, "many"])
def test_a_goal_that_is_none(goal: Any) -> None:
    site = layer()
    before = edges_of(site.weights)
    with pytest.raises(GbnnError, match="goal"):
        rewiring(goal=lambda sites, clock: goal).apply([site], HALF, np.random.default_rng(0))
    assert edges_of(site.weights) == before


def test_a_prune_rule_that_does_not_come_down_to_the_goal() -> None:
    site = layer()
    keeps_all = rewiring(prune=lambda s, f, r: np.empty(0, dtype=np.int64), goal=lambda s, c: 10)
    with pytest.raises(ArgumentError, match="prune: expected rules that drop at least 10 edges, got 0"):
        keeps_all.apply([site], HALF, np.random.default_rng(0))
    assert site.weights.nnz == 20


@pytest.mark.parametrize("given_rates", [[0.1], [0.1, 1.5], "ab", None, [0.1, float("nan")]])
def test_rates_that_are_none(given_rates: Any) -> None:
    with pytest.raises(GbnnError, match="rates"):
        rewiring(rates=lambda sites, fraction: given_rates).apply(
            [layer(), layer()], HALF, np.random.default_rng(0)
        )


# -- More that go, and several in turn -----------------------------------------------------------------------


def test_also_drop_adds_to_what_goes() -> None:
    site = layer()
    weights = site.weights
    first = edges_of(weights)[0]
    recipe = rewiring(
        fraction=constant(0.25),
        also_drop=lambda sites, dropped: [np.union1d(gone, [0]) for gone in dropped],
    )
    (done,) = recipe.apply([site], HALF, np.random.default_rng(0))
    assert done.change.dropped in (5, 6)
    assert first not in edges_of(weights)
    assert weights.nnz == 20


def test_in_turn_each_sees_what_the_one_before_has_left() -> None:
    site = layer(40)
    seen = []

    def grow(site: Site, dropped: Any, count: int, rng: np.random.Generator) -> Any:
        seen.append((site.weights.nnz, count, site.edge_gradient.size))
        return gradient(site, dropped, count, rng)

    both = in_turn(
        rewiring(goal=lambda s, c: 20), rewiring(fraction=constant(0.5), grow=grow), rewiring(when=never)
    )
    changes = both.apply([site], HALF, np.random.default_rng(0))
    assert seen == [(20, 10, 20)]
    assert [(d.change.before, d.change.origin.size) for d in changes] == [(40, 20), (20, 20)]
    np.testing.assert_allclose(site.edge_gradient, site.probe.at(site.weights.sources, site.weights.targets))


def test_in_turn_is_due_when_one_is() -> None:
    one = rewiring(when=lambda c: c.step == 1)
    two = rewiring(when=lambda c: c.step == 2, replaces_update=True)
    both = in_turn(one, two)
    assert [both.due(Clock(s)) for s in range(4)] == [False, True, True, False]
    assert [both.skips_update(Clock(s)) for s in range(4)] == [False, False, True, False]
    assert not both.watches
    watching = []
    third = rewiring(each_step=lambda site, clock, rng: watching.append(site.name))
    assert in_turn(one, third).watches
    in_turn(one, third).watch([layer(), layer()], HALF, np.random.default_rng(0))
    assert watching == ["0.weights", "0.weights"]
    assert isinstance(both, Rewirer)


def test_in_turn_takes_rewirings_only() -> None:
    with pytest.raises(KindError, match=r"rewirings\[1\]: expected a gbnn rewiring, got int"):
        in_turn(rewiring(), 3)  # type: ignore[arg-type]
