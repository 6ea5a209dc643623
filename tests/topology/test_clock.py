"""When and how much: every rule by value against its formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.topology import Clock, When, constant, cosine, doubling, every_epoch, every_steps, piecewise

patient = settings(deadline=None)  # other work may keep the cores busy
shares = st.floats(0, 1, exclude_min=True)


def chosen(when: When, total: int | None, steps: int) -> set[int]:
    return {s for s in range(steps) if when(Clock(step=s, total_steps=total))}


@patient
@given(st.integers(1, 40), st.integers(1, 300), shares)
def test_every_steps_until_a_share(n: int, total: int, until: float) -> None:
    expected = {s for s in range(n, total, n) if s < until * total}
    assert chosen(every_steps(n, until), total, total) == expected


@patient
@given(st.integers(1, 40), st.integers(1, 300), st.sampled_from([None, 5, 200]))
def test_every_steps_until_a_step_needs_no_total(n: int, until: int, total: int | None) -> None:
    assert chosen(every_steps(n, until), total, 320) == set(range(n, until, n))


def test_rigl_updates_of_a_thousand_steps() -> None:
    assert chosen(every_steps(100), 1000, 1000) == {100, 200, 300, 400, 500, 600, 700}


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_numpy_integers_are_steps_not_shares(kind: Any) -> None:
    assert chosen(every_steps(kind(10), kind(25)), 1000, 1000) == {10, 20}
    assert cosine(0.3, kind(40))(Clock(step=20, total_steps=1000)) == pytest.approx(0.15)
    assert Clock(step=0, total_steps=1000).end(kind(7)) == 7


def test_numpy_floats_are_shares() -> None:
    half: Any = np.float32(0.5)
    assert chosen(every_steps(10, half), 60, 60) == {10, 20}
    assert cosine(half, np.float64(0.5))(Clock(step=25, total_steps=100)) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "rule",
    [every_steps(100, 0.5), cosine(0.3, 0.5), lambda clock: clock.end(1.0)],
    ids=["when", "share", "end"],
)
def test_a_share_of_an_unknown_total_shows_at_the_first_step(rule: Callable[[Clock], Any]) -> None:
    with pytest.raises(ArgumentError, match="until"):
        rule(Clock(step=0, total_steps=None))


@patient
@given(st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_every_epoch(epochs: int, batches: int, skip_last: bool) -> None:
    when = every_epoch(skip_last=skip_last)
    total = epochs * batches
    clocks = [Clock(s, s // batches, epochs, s % batches == batches - 1, total) for s in range(total)]
    ends = list(range(batches - 1, total, batches))
    assert [c.step for c in clocks if when(c)] == (ends[:-1] if skip_last else ends)


@patient
@given(st.floats(0, 1), st.integers(0, 1000))
def test_constant(fraction: float, step: int) -> None:
    assert constant(fraction)(Clock(step)) == fraction


@patient
@given(st.floats(0, 1), shares, st.integers(1, 1000), st.integers(0, 1000))
def test_cosine_is_its_formula(alpha: float, until: float, total: int, step: int) -> None:
    end = until * total
    expected = alpha / 2 * (1 + math.cos(math.pi * step / end)) if step < end else 0.0
    got = cosine(alpha, until)(Clock(step, total_steps=total))
    assert got == pytest.approx(expected, abs=1e-12)
    assert 0 <= got <= alpha


@pytest.mark.parametrize(
    ("step", "share"), [(0, 0.3), (250, 0.225), (375, 0.15), (500, 0.075), (750, 0.0), (900, 0.0)]
)
def test_cosine_by_value(step: int, share: float) -> None:
    assert cosine(0.3)(Clock(step, total_steps=1000)) == pytest.approx(share)
    assert cosine(0.3, 750)(Clock(step)) == pytest.approx(share)


@pytest.mark.parametrize("until", [0, -3, 0.0, -0.1, 1.01, math.nan, math.inf, True, "0.5", None])
def test_until_errors(until: Any) -> None:
    with pytest.raises(GbnnError, match="until"):
        every_steps(10, until)
    with pytest.raises(GbnnError, match="until"):
        cosine(0.3, until)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, math.inf, True, "0.3", None])
def test_fraction_errors(fraction: Any) -> None:
    with pytest.raises(GbnnError, match="fraction"):
        constant(fraction)
    with pytest.raises(GbnnError, match="fraction"):
        cosine(fraction)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "3", None])
def test_period_errors(n: Any) -> None:
    with pytest.raises(GbnnError, match="n:"):
        every_steps(n)


@pytest.mark.parametrize("bad", [np.array([True, False]), 1, "yes", None])
def test_flags_are_true_or_false(bad: Any) -> None:
    with pytest.raises(KindError, match=r"^skip_last: expected True or False"):
        every_epoch(skip_last=bad)
    with pytest.raises(KindError, match=r"^closing: expected True or False"):
        every_steps(5, closing=bad)


@pytest.mark.parametrize("bad", [None, 5, np.array(5)])
def test_what_is_no_list(bad: Any) -> None:
    with pytest.raises(KindError, match=r"^values: expected a list of numbers"):
        piecewise(bad, [0.5])
    with pytest.raises(KindError, match=r"^steps: expected a list of numbers"):
        piecewise([0.5], bad)
    with pytest.raises(KindError, match=r"^steps: expected a list of numbers"):
        doubling(10, bad)
