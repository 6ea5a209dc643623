"""Layers with edges, as hypothesis draws them, and what is known of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.semirings import EdgeGradient
from gbnn.topology import Site
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

# Few different numbers: ties abound, also between w and -w, and zeros of both signs.
COARSE = [-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0]


def site_of(mask: Any, seed: int = 0, *, coarse: bool = False, index: int = 0, count: int = 1) -> Site:
    """A float64 layer with edges where `mask`, (in, out), is true.

    Values, x and dy of a batch of 3 and two slots are random: floats, or a few numbers that tie.
    """
    present = np.asarray(mask, dtype=bool)
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> Array:
        return rng.choice(COARSE, size=shape) if coarse else rng.standard_normal(shape)

    sources, targets = np.nonzero(present)
    edges, _ = Edges.from_coo(sources, targets, present.shape)
    x, dy = np.asfortranarray(drawn(3, present.shape[0])), np.asfortranarray(drawn(3, present.shape[1]))
    slots = {"momentum": drawn(edges.nnz), "square": drawn(edges.nnz) ** 2}
    return Site(
        f"{index}.weights", Weights(edges, drawn(edges.nnz)), EdgeGradient(x, dy, edges), slots, index, count
    )


@st.composite
def masks(draw: st.DrawFn, most: int = 6) -> Array:
    """Which edges exist: none, all, one, or any."""
    shape = draw(st.integers(1, most)), draw(st.integers(1, most))
    places = shape[0] * shape[1]
    nnz = draw(st.one_of(st.sampled_from([0, 1, places - 1, places]), st.integers(0, places)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return (rng.permutation(places) < nnz).reshape(shape)


@st.composite
def some_site(draw: st.DrawFn) -> Site:
    """One layer."""
    return site_of(draw(masks()), draw(st.integers(0, 2**16)), coarse=draw(st.booleans()))


@st.composite
def some_sites(draw: st.DrawFn, least: int = 0) -> list[Site]:
    """The layers of a network, their index and count right."""
    number = draw(st.integers(least, 4))
    return [
        site_of(draw(masks()), draw(st.integers(0, 2**16)), coarse=draw(st.booleans()), index=k, count=number)
        for k in range(number)
    ]


@st.composite
def partly_dropped(draw: st.DrawFn) -> tuple[list[Site], list[Array], int]:
    """Layers, the positions each drops, and how many edges are to grow in all: also none, and all."""
    places = draw(some_sites())
    dropped = []
    for site in places:
        nnz = site.weights.nnz
        count = draw(st.one_of(st.sampled_from([0, nnz]), st.integers(0, nnz)))
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        dropped.append(np.sort(rng.permutation(nnz)[:count]))
    gone = sum(some.size for some in dropped)
    free = sum(site.free for site in places) + gone
    total = draw(st.one_of(st.sampled_from([0, gone, free]), st.integers(0, free)))
    return places, dropped, total


def dense(site: Site, values: Any) -> Array:
    """One number an edge as an (in, out) array, NaN where there is no edge."""
    result = np.full(site.weights.shape, np.nan)
    result[site.weights.sources, site.weights.targets] = values
    return result
