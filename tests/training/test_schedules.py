"""Schedules, by value and against torch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.training import schedules
from gbnn.training.schedules import (
    Schedule,
    as_schedule,
    constant,
    cosine,
    linear,
    one_cycle,
    piecewise,
    step_decay,
    warm_up,
)

STEPS = 30
BASE = 0.2

# Name -> our schedule, and torch's scheduler on an optimizer whose rate is BASE.
TWINS: dict[str, tuple[Schedule, Callable[[Any, Any], Any]]] = {
    "constant": (constant(BASE), lambda s, o: s.LambdaLR(o, lambda step: 1.0)),
    "step_decay": (step_decay(BASE, every=7, factor=0.3), lambda s, o: s.StepLR(o, 7, 0.3)),
    "piecewise": (
        piecewise([BASE, BASE * 0.1, BASE * 0.01], [5, 21]),
        lambda s, o: s.MultiStepLR(o, [5, 21], 0.1),
    ),
    "linear": (
        linear(BASE * 0.25, BASE, steps=12),
        lambda s, o: s.LinearLR(o, start_factor=0.25, end_factor=1.0, total_iters=12),
    ),
    "cosine": (cosine(BASE, STEPS, final=0.03), lambda s, o: s.CosineAnnealingLR(o, STEPS, eta_min=0.03)),
    "warm_up": (
        warm_up(4, BASE),
        lambda s, o: s.LinearLR(o, start_factor=1 / 5, end_factor=1.0, total_iters=4),
    ),
    "one_cycle": (
        one_cycle(BASE, STEPS),
        lambda s, o: s.OneCycleLR(o, BASE, total_steps=STEPS, cycle_momentum=False),
    ),
    "one_cycle, turn between steps": (
        one_cycle(BASE, STEPS, rise=0.25, start_divisor=10.0, final_divisor=50.0),
        lambda s, o: s.OneCycleLR(
            o,
            BASE,
            total_steps=STEPS,
            pct_start=0.25,
            div_factor=10.0,
            final_div_factor=50.0,
            cycle_momentum=False,
        ),
    ),
    "one_cycle, less than a step rises": (
        one_cycle(BASE, STEPS, rise=0.01),
        lambda s, o: s.OneCycleLR(o, BASE, total_steps=STEPS, pct_start=0.01, cycle_momentum=False),
    ),
}


def test_every_schedule_has_a_twin() -> None:
    made = {name.split(",")[0] for name in TWINS}
    assert made == set(schedules.__all__) - {"Schedule", "as_schedule"}


@pytest.mark.parametrize("name", TWINS)
def test_equals_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = TWINS[name]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE)
    scheduler = theirs(torch.optim.lr_scheduler, optimizer)
    expected = []
    for _ in range(STEPS):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    np.testing.assert_allclose([ours(step) for step in range(STEPS)], expected, rtol=1e-12, atol=1e-17)


@pytest.mark.parametrize(
    ("schedule", "end", "last"),
    [
        (linear(1.0, 0.25, steps=8), 8, 0.25),
        (cosine(1.0, steps=8, final=0.1), 8, 0.1),
        (one_cycle(5.0, steps=8, start_divisor=2.0, final_divisor=10.0), 7, 0.25),
        (one_cycle(5.0, steps=8, rise=1.0), 7, 5.0),
        (piecewise([1.0, 3.0], [4]), 4, 3.0),
        (warm_up(3, cosine(1.0, steps=5)), 8, 0.0),
    ],
)
def test_stays_at_the_last_value_from_the_last_step_on(schedule: Schedule, end: int, last: float) -> None:
    assert schedule(end - 1) != last
    assert [schedule(step) for step in (end, end + 1, 10**9)] == [last] * 3


def test_one_cycle_of_the_fewest_steps() -> None:
    # One step, or a turn exactly at step 0, where torch divides by zero.
    assert one_cycle(1.0, steps=1, rise=1.0)(0) == 1.0
    assert one_cycle(1.0, steps=2, rise=0.5)(0) == 1.0
    assert one_cycle(1.0, steps=1)(0) == 1.0 / 25 / 1e4


def test_warm_up_follows_from_its_start() -> None:
    schedule = warm_up(4, lambda step: 10.0 + step)
    assert [schedule(step) for step in range(7)] == [2.0, 4.0, 6.0, 8.0, 10.0, 11.0, 12.0]
    assert [warm_up(0, lambda step: 10.0 + step)(step) for step in range(2)] == [10.0, 11.0]


@settings(deadline=None)
@given(
    first=st.floats(0, 1e3),
    last=st.floats(0, 1e3),
    steps=st.integers(1, 1000),
    step=st.integers(0, 2000),
)
def test_annealing_stays_between_its_ends_and_never_turns(
    first: float, last: float, steps: int, step: int
) -> None:
    for make in (linear, cosine):
        schedule = make(first, last, steps) if make is linear else cosine(first, steps, last)
        low, high, slack = min(first, last), max(first, last), 1e-12 * max(first, last)
        here, there = schedule(step), schedule(step + 1)
        assert low - slack <= here <= high + slack
        assert (there - here) * math.copysign(1.0, last - first) >= -slack
        assert schedule(0) == first
        assert schedule(steps) == last


@settings(deadline=None)
@given(steps=st.integers(1, 500), rise=st.floats(0, 1), step=st.integers(0, 1000))
def test_one_cycle_never_exceeds_its_peak(steps: int, rise: float, step: int) -> None:
    assert 1.0 / 25 / 1e4 <= one_cycle(1.0, steps, rise)(step) <= 1.0


def test_as_schedule_gives_checked_python_floats() -> None:
    schedule = as_schedule("rate", lambda step: np.float64(0.5) if step < 3 else -1, low=0.0)
    assert type(schedule(0)) is float
    with pytest.raises(ArgumentError, match=r"rate at step 3: .* got -1"):
        schedule(3)
    with pytest.raises(KindError, match="rate at step 0"):
        as_schedule("rate", lambda step: "fast")(0)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("make", "error", "where"),
    [
        (lambda: constant(math.nan), ArgumentError, "value"),
        (lambda: constant("0.1"), KindError, "value"),
        (lambda: step_decay(1.0, every=0), ArgumentError, "every"),
        (lambda: step_decay(1.0, every=2.5), KindError, "every"),
        (lambda: step_decay(1.0, every=2, factor=0.0), ArgumentError, "factor"),
        (lambda: step_decay(1.0, every=2, factor=1.5), ArgumentError, "factor"),
        (lambda: piecewise([1.0], [3]), ArgumentError, "values"),
        (lambda: piecewise([1.0, math.inf], [3]), ArgumentError, "values"),
        (lambda: piecewise([1.0, 2.0], [0]), ArgumentError, "boundaries"),
        (lambda: piecewise([1.0, 2.0, 3.0], [3, 3]), ArgumentError, "boundaries"),
        (lambda: linear(math.inf, 0.0, 3), ArgumentError, "start"),
        (lambda: linear(0.0, math.inf, 3), ArgumentError, "end"),
        (lambda: linear(1.0, 0.0, 0), ArgumentError, "steps"),
        (lambda: cosine(None, 3), KindError, "value"),
        (lambda: cosine(1.0, True), KindError, "steps"),
        (lambda: cosine(1.0, 3, final=math.nan), ArgumentError, "final"),
        (lambda: warm_up(-1, 1.0), ArgumentError, "steps"),
        (lambda: warm_up(1, math.nan), ArgumentError, "then"),
        (lambda: one_cycle(math.nan, 3), ArgumentError, "peak"),
        (lambda: one_cycle(1.0, 0), ArgumentError, "steps"),
        (lambda: one_cycle(1.0, 3, rise=1.1), ArgumentError, "rise"),
        (lambda: one_cycle(1.0, 3, start_divisor=0.0), ArgumentError, "start_divisor"),
        (lambda: one_cycle(1.0, 3, final_divisor=-1.0), ArgumentError, "final_divisor"),
        (lambda: as_schedule("rate", -0.1, low=0.0), ArgumentError, "rate"),
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Schedule], error: type[GbnnError], where: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert caught.value.where == where
