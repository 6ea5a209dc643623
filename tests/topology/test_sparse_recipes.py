"""Every recipe, and every rule, on layers that get sparse batches: it works, or an error says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.active import WIDE, site_of, sparse_of, spread

from gbnn import losses, topology, training
from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.layers import Chain, Linear, ReserveLinear, Tanh
from gbnn.sampling import distinct_edges
from gbnn.semirings import ActiveProbe, EdgeGradient
from gbnn.topology import Clock, Rewirer, grow, prune, rates, redistribute, scores
from gbnn.topology.grow.candidates import uniform
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
NEEDS_DENSE = "dense batch"

RECIPES: dict[str, tuple[Callable[[], Rewirer], str | None]] = {
    "static": (topology.static, None),
    "set_": (lambda: topology.set_(0.3), None),
    "rigl": (lambda: topology.rigl(2, 0.5, until=1.0), None),
    "snfs": (lambda: topology.snfs(2, 0.5), NEEDS_DENSE),
    "sparse_momentum": (lambda: topology.sparse_momentum(steps=3), NEEDS_DENSE),
    "srigl": (lambda: topology.srigl(2, 0.5), NEEDS_DENSE),
    "dsr": (lambda: topology.dsr(0.3, topology.every_steps(2, 1.0)), None),
    "deep_r": (lambda: topology.deep_r(0.05), None),
    "mest": (lambda: topology.mest(every=1), None),
    "mest, soft": (lambda: topology.mest(True, every=1), None),
    "itop": (lambda: topology.itop(every=3), None),
    "itop, gradient": (lambda: topology.itop(topology.gradient, every=3), None),
    "gse": (lambda: topology.gse(2, 0.5), NEEDS_DENSE),
    "gmp": (lambda: topology.gmp(0.05, 2), None),
    "granet": (lambda: topology.granet(0.05, 2), None),
    "grow_on_demand": (lambda: topology.grow_on_demand(80, 2, pace=0.2), None),
    "grow_on_demand, fan_out": (
        lambda: topology.grow_on_demand(80, 2, offer=grow.fan_out(2), pace=1.0),
        None,
    ),
    "cht": (lambda: topology.cht(0.3), None),
    "chts": (lambda: topology.chts(0.3), None),
    "chtss": (lambda: topology.chtss(0.05, 0.3), None),
    "top_kast": (lambda: topology.top_kast(2), None),
}


def batches(width: int = 40, count: int = 4) -> list[tuple[Any, Array]]:
    """Sparse batches in which 20 features appear; targets that some of them tell."""
    rng = np.random.default_rng(1)
    ids = np.arange(20) * (width // 20)
    made = []
    for _ in range(count):
        x = sparse_of(rng, 6, 20, 30, np.float64)
        made.append((spread(x, ids, width), x.to_dense()[:, :2] - x.to_dense()[:, 2:4]))
    return made


def train(model: Any, recipe: Rewirer, width: int = 40) -> list[Any]:
    adam = training.adam(0.01)
    return list(
        training.train(
            model, batches(width), loss=losses.mse, optimizer=adam, rewiring=recipe, epochs=4, seed=0
        )
    )


def model_of(*, reserve: bool) -> Chain:
    options: dict[str, Any] = {"dtype": np.float64}
    first, last = (
        Linear.random(40, 16, nnz=80, seed=0, **options),
        Linear.random(16, 2, nnz=20, seed=1, **options),
    )
    if reserve:
        return Chain(ReserveLinear.of(first, 20, seed=2), Tanh(), ReserveLinear.of(last, 5, seed=3))
    return Chain(first, Tanh(), last)


@pytest.mark.parametrize("name", RECIPES)
def test_works_or_says_why_not(name: str) -> None:
    make, refused = RECIPES[name]
    model = model_of(reserve=name == "top_kast")
    if refused:
        with pytest.raises(ArgumentError, match=rf"rewiring 0\.weights.*{refused}"):
            train(model, make())
        return
    steps = train(model, make())
    moved = [change for step in steps for change in step.changes]
    assert bool(moved) == (name != "static")
    if name not in ("gmp", "granet", "chtss", "grow_on_demand"):
        edges = sum(model.parameters()[f"{k}.weights"].nnz for k in (0, 2))
        assert edges <= 120


def test_every_recipe_is_in_the_table() -> None:
    assert {name.split(",")[0] for name in RECIPES} == set(topology.recipes.__all__)


# -- Rules alone, at 2**60 x 8 (source * 8 + target would not fit an int64) ----------------------------------

A_WEIGHT_EACH = "at most 2147483648 neurons"

GROW: dict[str, tuple[Any, str | None]] = {
    "random": (grow.random, None),
    "gradient": (grow.gradient, None),
    "recent_gradient": (grow.recent_gradient(), "remember"),
    "sampled_gradient": (grow.sampled_gradient(), A_WEIGHT_EACH),
    "graest": (grow.sampled_gradient(1.0, grow.graest), A_WEIGHT_EACH),
    "uniform candidates": (grow.sampled_gradient(1.0, uniform), A_WEIGHT_EACH),
    "preferential": (grow.preferential(), None),
    "small_world": (grow.small_world(0.1), None),
    "local": (grow.local(0.1), None),
    "same_block": (grow.same_block(2), None),
    "swapped": (grow.swapped(), None),
    "in_groups": (grow.in_groups(4), None),
    "random_blocks": (grow.random_blocks(1), None),
    "gradient_blocks": (grow.gradient_blocks(1), A_WEIGHT_EACH),
}


def wide_site(active: int = 12) -> tuple[topology.Site, Array]:
    rng = np.random.default_rng(0)
    ids = np.arange(16) * (WIDE // 16)
    x = spread(sparse_of(rng, 4, 16, active, np.float32), ids, WIDE)
    dy = np.asfortranarray(rng.integers(-2, 3, (4, 8)), np.float32)
    i, j = distinct_edges(rng, (16, 8), 40, ordered=True)
    return site_of(ActiveProbe(x, dy), Edges(ids[i], j, (WIDE, 8))), ids


@pytest.mark.parametrize("name", GROW)
@pytest.mark.parametrize("active", [0, 12])
def test_grow_rules_at_two_to_the_sixty(name: str, active: int) -> None:
    rule, refused = GROW[name]
    site, _ = wide_site(active)
    dropped = np.arange(0, 40, 4)
    if refused:
        with pytest.raises(ArgumentError, match=refused):
            rule(site, dropped, 10, np.random.default_rng(0))
        return
    sources, targets = rule(site, dropped, 10, np.random.default_rng(0))
    assert sources.size == 10
    site.rewire(dropped, sources, targets)  # which checks that each is absent, and comes once
    assert site.weights.nnz == 40


@pytest.mark.parametrize(
    "score",
    [scores.size, scores.taylor, scores.mest(0.1), scores.by_input(scores.size), scores.relative_importance],
    ids=["size", "taylor", "mest", "by_input", "relative_importance"],
)
def test_scores_at_two_to_the_sixty(score: Any) -> None:
    site, ids = wide_site()
    found = score(site)
    assert found.shape == (40,)
    x = np.zeros((4, 16), np.float32)
    x[site.probe.x.rows, np.searchsorted(ids, site.probe.x.columns)] = site.probe.x.values
    edges = Edges(np.searchsorted(ids, site.weights.sources), site.weights.targets, (16, 8))
    twin = topology.Site("w", Weights(edges, site.weights.values))
    twin.gradient = EdgeGradient(np.asfortranarray(x), site.probe.dy, edges)
    np.testing.assert_allclose(found, score(twin), rtol=1e-6)
    gone = prune.lowest(score)(site, 0.25, np.random.default_rng(0))
    assert gone.size == 10


def test_gradient_growth_and_allocation_of_two_layers() -> None:
    sites = [wide_site()[0], wide_site()[0]]
    sites[1].name = "v"
    rigl = topology.Rewiring(
        prune.magnitude,
        grow.gradient,
        topology.always,
        topology.constant(0.25),
        rates=rates.overall(),
        allocate=redistribute.by_gradient,
    )
    for step in range(3):
        done = rigl.apply(sites, Clock(step), np.random.default_rng(0))
        assert sum(site.weights.nnz for site in sites) == 80
        assert len(done) == 2
