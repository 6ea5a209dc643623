"""Edges per layer: exact sums, and each rule against its definition in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import models
from gbnn.errors import ArgumentError, GbnnError
from gbnn.topology.allocate import (
    Allocation,
    by_epsilon,
    by_fan_in,
    by_layer_fan_in,
    erdos_renyi,
    erk,
    keep_dense,
    proportional,
    uniform,
)
from gbnn.topology.divide import divide

Shape = tuple[int, int]

patient = settings(deadline=None, max_examples=50)  # other work may keep the cores busy
half: Allocation = partial(erk, scale=0.5)
# Each rule, with the density it gives a layer up to one factor for all.
DEFINITIONS: dict[Allocation, Callable[[int, int], Fraction]] = {
    uniform: lambda i, o: Fraction(1),
    erdos_renyi: lambda i, o: Fraction(i + o, i * o),
    erk: lambda i, o: Fraction(i + o, i * o),
    half: lambda i, o: Fraction(((i + o) / (i * o)) ** 0.5),
    by_fan_in: lambda i, o: Fraction(1, i),
    by_layer_fan_in: lambda i, o: Fraction(1, o),
}
every_rule = pytest.mark.parametrize("rule", DEFINITIONS)
widths = st.one_of(st.integers(1, 6), st.integers(1, 300))
some_shapes = st.lists(st.tuples(widths, widths), min_size=1, max_size=6)


@st.composite
def wishes(draw: st.DrawFn) -> tuple[list[Shape], int]:
    """Draw shapes and a total: nothing, everything, one short of it, or any."""
    shapes = draw(some_shapes)
    most = sum(i * o for i, o in shapes)
    return shapes, draw(st.one_of(st.sampled_from([0, most, most - 1]), st.integers(0, most)))


def by_definition(shapes: list[Shape], total: int, p: Callable[[int, int], Fraction]) -> list[Fraction]:
    """Edges of each layer before rounding: density ε·p; while one is beyond 1, the densest is made full."""
    full: set[int] = set()
    while True:
        left = total - sum(shapes[k][0] * shapes[k][1] for k in full)
        solved_for = [k for k in range(len(shapes)) if k not in full]
        weight = sum(p(*shapes[k]) * shapes[k][0] * shapes[k][1] for k in solved_for)
        density = [
            Fraction(1) if k in full else Fraction(left) / weight * p(*shapes[k]) for k in range(len(shapes))
        ]
        worst = max(range(len(shapes)), key=lambda k: density[k])
        if density[worst] <= 1:
            return [d * i * o for d, (i, o) in zip(density, shapes, strict=True)]
        full |= {k for k in solved_for if density[k] == density[worst]}


@every_rule
@patient
@given(wishes())
def test_sum_is_exact_and_no_layer_is_beyond_its_places(
    rule: Allocation, wish: tuple[list[Shape], int]
) -> None:
    shapes, total = wish
    counts = rule(shapes, total)
    assert sum(counts) == total
    assert all(type(n) is int for n in counts)
    assert all(0 <= n <= i * o for n, (i, o) in zip(counts, shapes, strict=True))


@every_rule
@patient
@given(wishes())
def test_is_the_definition_within_one_edge(rule: Allocation, wish: tuple[list[Shape], int]) -> None:
    shapes, total = wish
    for count, ideal in zip(
        rule(shapes, total), by_definition(shapes, total, DEFINITIONS[rule]), strict=True
    ):
        assert abs(count - ideal) < 1


@patient
@given(
    st.lists(st.tuples(st.integers(20, 90), st.integers(20, 90)), min_size=1, max_size=5), st.integers(0, 200)
)
def test_proportional_where_no_cap_binds(shapes: list[Shape], total: int) -> None:
    for count, (i, o) in zip(erdos_renyi(shapes, total), shapes, strict=True):
        assert abs(count - Fraction(total * (i + o), sum(map(sum, shapes)))) < 1


@every_rule
@patient
@given(wishes(), st.floats(0, 1))
def test_more_edges_in_all_are_not_fewer_anywhere(
    rule: Allocation, wish: tuple[list[Shape], int], share: float
) -> None:
    # Largest remainders may take one edge back, as they do with seats in parliaments.
    shapes, total = wish
    fewer = rule(shapes, int(share * total))
    assert all(n >= m - 1 for n, m in zip(rule(shapes, total), fewer, strict=True))


@patient
@given(wishes())
def test_erdos_renyi_makes_the_smaller_layer_denser(wish: tuple[list[Shape], int]) -> None:
    shapes, total = wish
    layers = [
        (Fraction(i + o, i * o), i * o, n)
        for (i, o), n in zip(shapes, erdos_renyi(shapes, total), strict=True)
    ]
    layers.sort()
    for (_, places, n), (_, more_places, m) in pairwise(layers):
        assert Fraction(n - 1, places) < Fraction(m + 1, more_places)


@pytest.mark.parametrize(
    ("rule", "shapes", "total", "counts"),
    [
        # ε = 13310 / 1594: 9051.47, 3340.03 and 918.51 edges.
        (erdos_renyi, [(784, 300), (300, 100), (100, 10)], 13_310, [9051, 3340, 919]),
        # The last would get 1837 of 1000 places; the others share what is left: 18714.56 and 6905.66.
        (erdos_renyi, [(784, 300), (300, 100), (100, 10)], 26_620, [18_714, 6906, 1000]),
        # SET's own setting for CIFAR-10: ε(in + out) links with ε = 20.
        (erdos_renyi, [(3072, 4000), (4000, 1000), (1000, 4000)], 341_440, [141_440, 100_000, 100_000]),
        # ε = 1.92 is beyond the first layer only (0.99); solved again, 2.5 is beyond the second, too (1.94).
        (erdos_renyi, [(1, 100), (2, 60), (50, 50)], 505, [100, 120, 285]),
        (uniform, [(10, 10), (10, 30), (5, 1)], 81, [20, 60, 1]),
        (erdos_renyi, [(4, 1), (1, 4), (4, 1)], 2, [1, 1, 0]),  # a tie goes to the earlier layer
        (uniform, [], 0, []),
        # A kernel: 5·(64 + 64)·9 and 5·(10 + 20); with ERK 3·(64 + 64 + 3 + 3) and 3·(10 + 20).
        (erdos_renyi, [(64, 64, 3, 3), (10, 20)], 5910, [5760, 150]),
        (erk, [(64, 64, 3, 3), (10, 20)], 492, [402, 90]),
        (uniform, [(64, 64, 3, 3), (10, 20)], 18_532, [18_432, 100]),
        (by_fan_in, [(5, 100), (50, 10)], 330, [300, 30]),
        (by_fan_in, [(2, 100), (50, 10)], 330, [200, 130]),
        (by_layer_fan_in, [(100, 5), (10, 50)], 330, [300, 30]),
    ],
)
def test_by_value(rule: Allocation, shapes: list[Shape], total: int, counts: list[int]) -> None:
    assert rule(shapes, total) == counts


@every_rule
def test_exact_beyond_the_precision_of_floating_point(rule: Allocation) -> None:
    shapes = [(2**60, 2**60), (2**59, 2**60), (3, 2**60)]
    for total in (2**80 + 1, sum(i * o for i, o in shapes) - 1):
        counts = rule(shapes, total)
        assert sum(counts) == total
        assert all(0 <= n <= i * o for n, (i, o) in zip(counts, shapes, strict=True))


@every_rule
def test_numpy_integers_do_not_overflow(rule: Allocation) -> None:
    width: Any = np.int32(70_000)
    total: Any = np.int32(10_001)
    shapes = [(width, width), (width, np.int64(2**40))]
    assert rule(shapes, total) == rule([(70_000, 70_000), (70_000, 2**40)], 10_001)


@every_rule
@pytest.mark.parametrize(
    ("shapes", "total"),
    [
        ([(3, 4)], -1),
        ([(3, 4)], 13),
        ([], 1),
        ([(3, 4)], 2.0),
        ([(3, 4)], True),
        ([(3, 4)], "2"),
        ([(0, 4)], 0),
        ([(3, -4)], 0),
        ([(3, 2**61)], 0),
        ([(3,)], 0),
        (["34"], 0),
        ("34", 0),
        ([(3.0, 4)], 0),
        ([7], 0),
        ([None], 0),
    ],
)
def test_errors(rule: Allocation, shapes: Any, total: Any) -> None:
    with pytest.raises(GbnnError):
        rule(shapes, total)


@patient
@given(wishes())
def test_erk_at_scale_1_is_erdos_renyi_and_at_0_uniform(wish: tuple[list[Shape], int]) -> None:
    assert erk(*wish) == erdos_renyi(*wish)
    assert erk(*wish, scale=0) == uniform(*wish)


@patient
@given(
    st.lists(st.lists(st.integers(1, 9), min_size=2, max_size=4).map(tuple), min_size=1, max_size=5),
    st.floats(0, 1),
    st.floats(0, 50),
)
def test_erk_of_kernels_is_exact_and_proportional(
    shapes: list[tuple[int, ...]], share: float, scale: float
) -> None:
    places = [math.prod(shape) for shape in shapes]
    total = int(share * sum(places))
    counts = erk(shapes, total, scale=scale)
    assert sum(counts) == total
    assert all(0 <= n <= most for n, most in zip(counts, places, strict=True))
    density = [(sum(shape) / most) ** scale for shape, most in zip(shapes, places, strict=True)]
    for (n, most, p), (m, more, q) in pairwise(sorted(zip(counts, places, density, strict=True))):
        if n < most and m < more:  # both open: their densities are as p to q, within an edge each
            assert (n - 1) / most * q <= (m + 1) / more * p * (1 + 1e-9)
            assert (m - 1) / more * p <= (n + 1) / most * q * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e6, 1e300])
def test_erk_of_absurd_scales_is_still_exact(scale: float) -> None:
    shapes = [(784, 300), (1, 1), (2**60, 2**60), (100, 10)]
    for total in (0, 77, 2**100):
        assert sum(erk(shapes, total, scale=scale)) == total


def test_by_fan_in_gives_every_neuron_the_same_number_of_inputs() -> None:
    shapes = [(784, 300), (300, 100), (8, 10)]
    counts = by_fan_in(shapes, 20 * 400 + 80)
    assert counts == [6000, 2000, 80]  # the last has but 8 inputs
    assert by_layer_fan_in([(o, i) for i, o in shapes], 20 * 400 + 80) == counts


@pytest.mark.parametrize("rule", [by_fan_in, by_layer_fan_in])
def test_a_fan_in_of_kernels_is_refused(rule: Allocation) -> None:
    with pytest.raises(ArgumentError, match="shape"):
        rule([(3, 4, 5)], 1)


@patient
@given(wishes(), st.randoms(use_true_random=False))
def test_proportional_to_scores(wish: tuple[list[Shape], int], random: Any) -> None:
    shapes, total = wish
    scores = [random.choice([0.0, 1.0, random.random(), 1e300, 5e-324]) for _ in shapes]
    counts = proportional(scores)(shapes, total)
    places = [i * o for i, o in shapes]
    assert sum(counts) == total
    assert all(0 <= n <= most for n, most in zip(counts, places, strict=True))
    served = [k for k, score in enumerate(scores) if score]
    full = all(counts[k] == places[k] for k in served)
    for k, score in enumerate(scores):
        if score == 0:  # last, and then at equal density
            assert counts[k] == 0 or full
        elif counts[k] < places[k]:
            for j in served:
                assert counts[j] - 1 <= Fraction(scores[j]) / Fraction(score) * (counts[k] + 1)


@pytest.mark.parametrize(
    ("scores", "shapes", "total", "counts"),
    [
        ([3, 1], [(10, 10), (10, 30)], 40, [30, 10]),
        ([9, 1, 0], [(2, 5), (10, 2), (30, 2)], 36, [10, 20, 6]),
        ([0, 0], [(2, 5), (3, 10)], 4, [1, 3]),
        (np.array([0.5, 0.25, 0.25], dtype=np.float32), [(9, 9)] * 3, 8, [4, 2, 2]),
        ([], [], 0, []),
    ],
)
def test_proportional_by_value(scores: Any, shapes: list[Shape], total: int, counts: list[int]) -> None:
    assert proportional(scores)(shapes, total) == counts


@pytest.mark.parametrize(
    "scores", [[-1.0], [np.nan], [np.inf], ["1"], "1", 1.0, None, [True], np.ones((1, 1))]
)
def test_proportional_refuses_bad_scores(scores: Any) -> None:
    with pytest.raises(GbnnError, match="scores"):
        proportional(scores)


def test_proportional_needs_as_many_layers_as_scores() -> None:
    with pytest.raises(ArgumentError, match="2 layers"):
        proportional([1.0, 2.0])([(3, 3)], 1)


@pytest.mark.parametrize("inner", [uniform, erdos_renyi, proportional([1.0, 2.0])])
def test_keep_dense_fills_the_ends_and_leaves_the_rest_to_another(inner: Allocation) -> None:
    shapes = [(50, 20), (20, 30), (30, 40), (40, 2)]
    counts = keep_dense(inner, last=True)(shapes, 1080 + 600)
    assert counts == [1000, *inner(shapes[1:3], 600), 80]


@pytest.mark.parametrize(
    ("first", "last", "total", "counts"),
    [
        (True, False, 12, [6, 2, 4]),
        (False, True, 12, [2, 2, 8]),
        (True, True, 17, [6, 3, 8]),
        (True, True, 14, [6, 0, 8]),
        (False, False, 9, [3, 2, 4]),
    ],
)
def test_keep_dense_by_value(first: bool, last: bool, total: int, counts: list[int]) -> None:
    assert keep_dense(uniform, first=first, last=last)([(2, 3), (2, 2), (2, 4)], total) == counts


def test_keep_dense_says_what_the_full_layers_take() -> None:
    with pytest.raises(ArgumentError, match="at least 14, the places of the layers that stay full"):
        keep_dense(last=True)([(2, 3), (2, 2), (2, 4)], 13)


def test_keep_dense_of_one_layer_and_of_none() -> None:
    assert keep_dense(last=True)([(3, 4)], 12) == [12]
    assert keep_dense(last=True)([], 0) == []
    for wrong in (11, 13):
        with pytest.raises(ArgumentError, match="nnz"):
            keep_dense(last=True)([(3, 4)], wrong)
    with pytest.raises(GbnnError, match="allocation"):
        keep_dense("uniform")  # type: ignore[arg-type]


@patient
@given(some_shapes, st.floats(0, 40))
def test_by_epsilon_is_what_erdos_renyi_makes_of_its_sum(shapes: list[Shape], epsilon: float) -> None:
    counts = by_epsilon(shapes, epsilon)
    for n, (i, o) in zip(counts, shapes, strict=True):
        assert type(n) is int
        assert abs(n - min(Fraction(epsilon) * (i + o), i * o)) <= Fraction(1, 2)
    # Rounding moves the sum by half an edge a layer at most, and what one layer gets by that at most.
    for n, m in zip(counts, erdos_renyi(shapes, sum(counts)), strict=True):
        assert abs(n - m) <= 1 + len(shapes) / 2


def test_by_epsilon_by_value() -> None:
    # SET on CIFAR-10, ε = 20: densities 1.15, 2.5, 2.5 %, and a last layer that is nearly all there.
    shapes = [(3072, 4000), (4000, 1000), (1000, 4000), (4000, 10)]
    assert by_epsilon(shapes) == [141_440, 100_000, 100_000, 40_000]
    assert by_epsilon([(3, 3)], 0.25) == [2]  # 1.5, up
    assert by_epsilon([(64, 64, 3, 3)], 5) == [5760]
    assert by_epsilon([(2**60, 2**60)], 2.0**50) == [2**111]
    for wrong in (-1.0, np.inf, None):
        with pytest.raises(GbnnError, match="epsilon"):
            by_epsilon(shapes, wrong)  # type: ignore[arg-type]


def test_a_model_takes_any_of_them() -> None:
    widths = [40, 30, 20, 10]
    for rule in (*DEFINITIONS, keep_dense(uniform, first=False, last=True), proportional([1.0, 2.0, 3.0])):
        assert models.mlp(widths, nnz=500, allocation=rule).nnz == 500
    assert models.mlp(widths, nnz=by_epsilon(list(pairwise(widths)), 2)).nnz == 2 * (70 + 50 + 30)


def test_divide_by_value() -> None:
    assert divide(10, [1, 1, 2], [1, 9, 9]) == [1, 3, 6]
    assert divide(3, [Fraction(1, 3), Fraction(2, 3)], [9, 9]) == [1, 2]
    assert divide(2**70 + 1, [2**70, 1], [2**80, 2**80]) == [2**70, 1]
    assert divide(5, [0, 1, 0], [9, 0, 1]) == [5, 0, 0]  # 4.5 and 0.5: a tie of remainders


@pytest.mark.parametrize("bad", [np.array([True, False]), 1, None, "no"])
def test_keep_dense_is_told_true_or_false(bad: Any) -> None:
    for name in ("first", "last"):
        with pytest.raises(GbnnError, match=f"^{name}: expected True or False"):
            keep_dense(**{name: bad})
