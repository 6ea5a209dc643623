"""RadiX-Net and butterflies: equally many paths between every input and every output."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import models
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.topology import wire

radix = st.integers(2, 4)


def matrix(edges: Edges) -> sp.csr_array:
    ones = np.ones(edges.nnz, dtype=np.int64)
    return sp.coo_array((ones, (edges.sources, edges.targets)), shape=edges.shape).tocsr()


def paths(layers: list[Edges]) -> np.ndarray:
    """Number of paths from every input to every output."""
    result = sp.eye_array(layers[0].shape[0], dtype=np.int64, format="csr")
    for layer in layers:
        result = result @ matrix(layer)
    return result.toarray()


@st.composite
def nets(draw: st.DrawFn) -> tuple[list[list[int]], list[int] | None]:
    first = draw(st.lists(radix, min_size=1, max_size=3))
    systems = [first]
    for _ in range(draw(st.integers(0, 2))):
        systems.append(draw(st.sampled_from([draw(st.permutations(first)), [prod(first)]])))
    if len(systems) > 1 and draw(st.booleans()):  # the last may be a divisor
        systems[-1] = first[: draw(st.integers(1, len(first)))]
    layers = sum(map(len, systems))
    copies = st.lists(st.integers(1, 3), min_size=layers + 1, max_size=layers + 1)
    return systems, draw(st.none() | copies)


@settings(deadline=None)
@given(nets())
def test_equally_many_paths_everywhere(net: tuple[list[list[int]], list[int] | None]) -> None:
    systems, copies = net
    layers = wire.radix_net(systems, copies)
    radices = [r for system in systems for r in system]
    copies = copies or [1] * (len(radices) + 1)
    size = prod(systems[0])
    assert [layer.shape for layer in layers] == [(size * a, size * b) for a, b in pairwise(copies)]
    for layer, r, before, after in zip(layers, radices, copies[:-1], copies[1:], strict=True):
        assert (matrix(layer).sum(axis=0) == r * before).all()
        assert (matrix(layer).sum(axis=1) == r * after).all()
        assert layer.nnz == matrix(layer).nnz == size * r * before * after
    each = prod(radices) * prod(copies[1:-1]) // size
    assert (paths(layers) == each).all()


def test_one_system_in_either_form() -> None:
    for radices in ([3, 2, 2], (3, 2, 2), np.array([3, 2, 2]), [[3, 2, 2]], [np.array([3, 2, 2])]):
        layers = wire.radix_net(radices)  # type: ignore[arg-type]
        assert [layer.nnz for layer in layers] == [36, 24, 24]
        assert (paths(layers) == 1).all()


def test_the_kronecker_product_of_ones_and_a_layer() -> None:
    plain, copied = wire.radix_net([3, 4]), wire.radix_net([3, 4], copies=[2, 1, 3])
    for a, b, block in zip(plain, copied, [(2, 1), (1, 3)], strict=True):
        np.testing.assert_array_equal(matrix(b).toarray(), np.kron(np.ones(block), matrix(a).toarray()))


def test_a_graph_challenge_network() -> None:
    """Width 1024, 32 edges a neuron."""
    layers = wire.radix_net([[32, 32]])
    for layer in layers:
        assert layer.shape == (1024, 1024)
        assert (matrix(layer).sum(axis=0) == 32).all()
        assert (matrix(layer).sum(axis=1) == 32).all()
    assert (paths(layers) == 1).all()
    model = models.mlp([1024] * 3, wiring=layers, seed=0)
    assert model.nnz == 2 * 32_768


@pytest.mark.parametrize(
    ("radices", "copies", "kind", "where"),
    [
        (6, None, KindError, "radices"),
        ("23", None, KindError, "radices"),
        ([], None, ArgumentError, "radices"),
        ([[]], None, ArgumentError, "radices"),
        ([[2, 3], []], None, ArgumentError, "radices"),
        ([2, 1], None, ArgumentError, r"radices\[1\]"),
        ([2, 3.0], None, KindError, r"radices\[1\]"),
        ([[2, 3], 6], None, KindError, r"radices\[1\]"),
        ([[2, 3], [4]], None, ArgumentError, r"radices\[1\]"),
        ([[2, 3], [2], [6]], None, ArgumentError, r"radices\[1\]"),
        ([[2, 2], [8]], None, ArgumentError, r"radices\[1\]"),
        ([2, 3], [1, 1], ArgumentError, "copies"),
        ([2, 3], [1, 0, 1], ArgumentError, r"copies\[1\]"),
        ([2, 3], 1, KindError, "copies"),
        ([2**31, 2**31], None, ArgumentError, ""),
        ([2**50], None, ArgumentError, "nnz"),
    ],
    ids=str,
)
def test_what_is_no_radix_net(radices: Any, copies: Any, kind: type[GbnnError], where: str) -> None:
    with pytest.raises(kind, match=f"^{where}.*: expected "):
        wire.radix_net(radices, copies)


# -- Butterflies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "radix"), [(2, 2), (16, 2), (3, 3), (27, 3), (64, 4), (25, 5), (7, 7)])
def test_a_butterfly_has_one_path_everywhere(n: int, radix: int) -> None:
    stages = wire.butterfly(n, radix)
    assert radix ** len(stages) == n
    assert all(stage.shape == (n, n) and stage.nnz == radix * n for stage in stages)
    assert (paths(stages) == 1).all()
    assert (paths(stages[::-1]) == 1).all()


def test_the_stages_of_a_fast_fourier_transform() -> None:
    for k, stage in enumerate(wire.butterfly(32)):
        dense = np.zeros((32, 32), dtype=np.int64)
        for i in range(32):
            dense[i, i] = dense[i, i ^ (1 << k)] = 1
        np.testing.assert_array_equal(matrix(stage).toarray(), dense)


@pytest.mark.parametrize(
    ("n", "radix", "kind", "where"),
    [
        (12, 2, ArgumentError, "n: expected a power of 2"),
        (8, 3, ArgumentError, "n: expected a power of 3"),
        (1, 2, ArgumentError, "n"),
        (2.0, 2, KindError, "n"),
        (8, 1, ArgumentError, "radix"),
        (2**45, 2, ArgumentError, "nnz"),
        (2**70, 2, ArgumentError, "in_features"),
    ],
)
def test_what_is_no_butterfly(n: Any, radix: Any, kind: type[GbnnError], where: str) -> None:
    with pytest.raises(kind, match=f"^{where}"):
        wire.butterfly(n, radix)
