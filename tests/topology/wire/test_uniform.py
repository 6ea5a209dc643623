"""Random graphs with the same number of edges for every neuron of one side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.topology import wire

SIDES = {"targets": wire.constant_fan_in, "sources": wire.constant_fan_out}
both = pytest.mark.parametrize(("side", "make"), SIDES.items(), ids=SIDES)


@both
@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_all_neurons_have_equally_many(
    side: str, make: Callable[..., Edges], rows: int, columns: int, data: st.DataObject
) -> None:
    nnz = data.draw(st.integers(0, rows * columns))
    edges = make(np.random.default_rng(data.draw(st.integers(0, 99))), (rows, columns), nnz)
    neurons = columns if side == "targets" else rows
    fans = np.bincount(getattr(edges, side), minlength=neurons)
    assert fans.max() - fans.min() <= 1
    assert fans.sum() == nnz


@pytest.mark.parametrize(
    ("make", "shape", "nnz", "graphs"),
    [
        (wire.random, (2, 3), 3, 20),
        (wire.constant_fan_in, (4, 2), 4, 36),  # listed and shuffled
        (wire.constant_fan_in, (4, 2), 3, 48),
        (wire.constant_fan_in, (9, 1), 2, 36),  # by rejection
        (wire.constant_fan_in, (5, 2), 2, 25),
        (wire.constant_fan_in, (3, 4), 2, 54),  # some targets get none
        (wire.constant_fan_out, (2, 4), 4, 36),
        (wire.constant_fan_out, (2, 5), 2, 25),
        (wire.n_of_m(1, 3), (6, 2), None, 81),
        (wire.n_of_m(2, 3), (3, 3), None, 27),
        (wire.blocks(2), (4, 6), 12, 20),
        (wire.small_world(1.0), (2, 3), 6, 1),
    ],
)
def test_every_such_graph_is_equally_likely(
    make: Callable[..., Edges], shape: tuple[int, int], nnz: int, graphs: int
) -> None:
    rng = np.random.default_rng(1)
    rounds = 60 * graphs
    seen: Counter[bytes] = Counter()
    for _ in range(rounds):
        edges = make(rng, shape, nnz)
        seen[(edges.sources * shape[1] + edges.targets).tobytes()] += 1
    assert len(seen) == graphs
    if graphs > 1:
        assert scipy.stats.chisquare(list(seen.values())).pvalue > 1e-4


def test_rejection_in_the_largest_layers_finds_different_sources() -> None:
    """Pairs beyond int64: a target's edges are many enough to collide among few sources."""
    edges = wire.constant_fan_in(np.random.default_rng(0), (50, 2**60), 300)
    assert np.unique(edges.targets).size == 300
    edges = wire.constant_fan_out(np.random.default_rng(0), (2**60, 2**60), 5000)
    assert np.unique(edges.sources).size == 5000
