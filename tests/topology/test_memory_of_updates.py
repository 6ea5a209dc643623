"""Memory of an update at 200,000 x 200,000 and 1,000,000 edges: that of a few numbers an edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.memory import peak_while

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.semirings import EdgeGradient
from gbnn.topology import (
    Clock,
    Rewired,
    Rewirer,
    Rewiring,
    Site,
    always,
    constant,
    deep_r,
    dsr,
    gmp,
    gse,
    magnitude,
    mest,
    preferential,
    rates,
    redistribute,
    set_,
    swapped,
)
from gbnn.weights import Weights

WIDTH, NNZ, BATCH = 200_000, 1_000_000, 4
EDGE = 8 * NNZ  # bytes of one number an edge
CLOCK = Clock(step=50, epoch=0, epochs=2, last_in_epoch=True, total_steps=100)

RECIPES: dict[str, Callable[[], Rewirer]] = {
    "set_": set_,
    "dsr": lambda: dsr(0.3, always, threshold=0.3),
    "deep_r": lambda: deep_r(0.5),
    "mest": lambda: mest(every=1),
    "gmp": lambda: gmp(1e-5, 50),
    "gse": lambda: gse(50, 0.3, candidates=NNZ),
    "swaps": lambda: Rewiring(magnitude, swapped(), always, constant(0.3)),
    "attachment": lambda: Rewiring(magnitude, preferential(), always, constant(0.3)),
    "global, survivors": lambda: Rewiring(
        magnitude,
        set_().grow,
        always,
        constant(0.3),
        rates=rates.overall(),
        allocate=redistribute.by_survivors,
    ),
}


@pytest.fixture(scope="module")
def start() -> tuple[Edges, Any]:
    rng = np.random.default_rng(0)
    edges, _ = Edges.from_coo(*distinct_edges(rng, (WIDTH, WIDTH), NNZ), (WIDTH, WIDTH))
    return edges, rng.standard_normal(NNZ, dtype=np.float32)


@pytest.mark.parametrize("name", RECIPES)
def test_an_update_takes_memory_of_its_edges(name: str, start: Any) -> None:
    edges, values = start
    rng = np.random.default_rng(1)
    weights = Weights(edges, values.copy())
    x, dy = (np.asfortranarray(rng.standard_normal((BATCH, WIDTH)), dtype=np.float32) for _ in range(2))
    slots = {"momentum": np.ones(NNZ, dtype=np.float32)}
    site = Site("w", weights, EdgeGradient(x, dy, edges), slots, 0, 2)
    np.asarray(site.gradient)
    recipe, planned = RECIPES[name](), 422_222 if name == "gmp" else NNZ
    assert recipe.due(CLOCK)

    def update() -> list[Rewired]:
        if recipe.watches:
            recipe.watch([site], CLOCK, rng)
        return recipe.apply([site], CLOCK, rng)

    peak, (done,) = peak_while(update)
    assert done.change.dropped > 1000
    # The peak bounds the largest array, too. in x out bytes would be 4,000 times an edge's number.
    assert peak < 14 * EDGE + 8 * WIDTH * 10
    assert weights.nnz == planned
