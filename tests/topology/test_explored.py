"""How many different edges a layer has had: exactly, then as an estimate in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.topology import Clock, Memory, Rewiring, Site, always, constant, explored, prune, random
from gbnn.topology import rewired as module
from gbnn.weights import Weights

patient = settings(deadline=None)


def layer(shape: tuple[int, int], nnz: int, seed: int = 0) -> Site:
    edges, _ = Edges.from_coo(*distinct_edges(np.random.default_rng(seed), shape, nnz), shape)
    return Site("w", Weights(edges, np.ones(nnz, dtype=np.float32)))


def moved(site: Site, times: int, share: float = 0.5) -> set[tuple[int, int]]:
    """Move edges at random; return all that there have been."""
    rng = np.random.default_rng(1)
    recipe = Rewiring(prune.at_random, random, always, constant(share))
    seen = set(zip(site.weights.sources.tolist(), site.weights.targets.tolist(), strict=True))
    for _ in range(times):
        recipe.apply([site], Clock(0), rng)
        seen |= set(zip(site.weights.sources.tolist(), site.weights.targets.tolist(), strict=True))
    return seen


@patient
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 81), st.integers(0, 8))
def test_it_is_the_number_of_different_edges(rows: int, columns: int, nnz: int, times: int) -> None:
    site = layer((rows, columns), min(nnz, rows * columns))
    seen = moved(site, times)
    full = nnz >= rows * columns
    assert explored(site.memory) == (len(seen) if times and not full else 0)
    assert explored(site.memory) == (len(seen) if times and not full else 0)  # asked again


def test_of_any_size() -> None:
    site = layer((2**60, 2**60), 300)
    seen = moved(site, 6)
    assert explored(site.memory) == len(seen) == 300 + 6 * 150


def test_beyond_what_is_remembered_it_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.explored.__globals__, "MOST", 2**14)
    site = layer((3000, 3000), 40_000)
    seen = moved(site, 12)
    assert len(seen) > 200_000
    assert explored(site.memory) == pytest.approx(len(seen), rel=0.04)
    assert site.memory.layer["explored"].size <= 2**14
    assert site.memory.layer["explored lately"].size <= 2**16


def test_nothing_rewired() -> None:
    assert explored(Memory()) == 0


def test_hashes_are_spread() -> None:
    mix: Any = module._mixed
    hashes = mix(np.arange(2**16))
    assert np.unique(hashes).size == 2**16
    for bit in range(64):
        share = ((hashes >> np.uint64(bit)) & np.uint64(1)).mean()
        assert abs(float(share) - 0.5) < 0.02
