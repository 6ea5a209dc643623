"""Edges per layer: exact sums, and the Erdos-Renyi rule against its definition in exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.errors import GbnnError
from gbnn.topology.allocate import Allocation, erdos_renyi, uniform

Shape = tuple[int, int]

patient = settings(deadline=None)  # other work may keep the cores busy
every_rule = pytest.mark.parametrize("rule", [uniform, erdos_renyi])
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


DEFINITIONS: dict[Allocation, Callable[[int, int], Fraction]] = {
    uniform: lambda i, o: Fraction(1),
    erdos_renyi: lambda i, o: Fraction(i + o, i * o),
}


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
        ([(3, 4, 5)], 0),
        ([(3.0, 4)], 0),
        ([7], 0),
        ([None], 0),
    ],
)
def test_errors(rule: Allocation, shapes: Any, total: Any) -> None:
    with pytest.raises(GbnnError):
        rule(shapes, total)
