"""Graphs of NetworkX and SciPy: who is a source, where edges go, and what is no graph of a layer."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.topology import wire


def pairs(edges: Edges) -> list[tuple[int, int]]:
    return list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))


# -- NetworkX ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_sides_by_attribute(kind: Any) -> None:
    graph = kind()
    graph.add_nodes_from(["x", "b", "c"], bipartite=0)
    graph.add_nodes_from([10, "a"], bipartite=1)
    graph.add_edges_from([("b", "a"), ("x", 10), ("c", "a")], weight=3.0)
    edges = wire.from_networkx(graph)
    assert edges.shape == (3, 2)
    assert pairs(edges) == [(0, 0), (1, 1), (2, 1)]


def test_undirected_edges_in_either_order() -> None:
    graph = nx.Graph([("t", "s"), ("r", "t"), ("u", "r")])
    assert pairs(wire.from_networkx(graph, sources=["r", "s"], targets=["t", "u"])) == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]


@pytest.mark.parametrize(
    "given", [{"sources": [3, 1]}, {"targets": [0, 2]}, {"sources": [3, 1], "targets": [0, 2]}]
)
def test_one_list_or_both(given: dict[str, list[int]]) -> None:
    graph = nx.path_graph(4)
    edges = wire.from_networkx(graph, **given)
    rank = {node: k for k, node in enumerate(given.get("sources", [1, 3]))}
    assert pairs(edges) == sorted([(rank[1], 0), (rank[1], 1), (rank[3], 1)])


def test_lists_go_before_attributes() -> None:
    graph = nx.complete_bipartite_graph(2, 3)
    assert wire.from_networkx(graph, sources=[4, 3, 2]).shape == (3, 2)
    assert wire.from_networkx(graph, targets=range(2)).shape == (3, 2)
    assert wire.from_networkx(graph, targets=(n for n in (2, 3, 4))).shape == (2, 3)


def test_as_networkx_has_it() -> None:
    graph = nx.bipartite.random_graph(30, 20, 0.2, seed=1)
    edges = wire.from_networkx(graph)
    dense = np.zeros((30, 20))
    dense[edges.sources, edges.targets] = 1
    np.testing.assert_array_equal(dense, nx.bipartite.biadjacency_matrix(graph, range(30)).toarray())


def test_nodes_without_edges() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(5))
    assert wire.from_networkx(graph, sources=[0, 1]).shape == (2, 3)
    assert wire.from_networkx(graph, sources=[0, 1]).nnz == 0


PATH = nx.path_graph(4)
DIRECTED = nx.DiGraph([(0, 2), (1, 2), (3, 1)])
TWICE = nx.MultiGraph([(0, 1), (0, 1), (2, 1), (2, 3)])
LOOP = nx.Graph([(0, 1), (1, 1), (1, 2), (2, 3)])
HALF = nx.Graph()
HALF.add_node("a", bipartite=0)
HALF.add_node("b", bipartite=2)


@pytest.mark.parametrize(
    ("graph", "given", "kind", "message"),
    [
        ([(0, 1)], {}, KindError, "graph: expected a NetworkX graph, got list"),
        (PATH, {}, ArgumentError, 'graph: expected attribute "bipartite" .*, got None at 0'),
        (HALF, {}, ArgumentError, "graph: .*got 2 at 'b'"),
        (PATH, {"sources": 5}, KindError, "sources: expected nodes of the graph"),
        (PATH, {"sources": [0, 9]}, ArgumentError, "sources: expected nodes of the graph, got 9"),
        (PATH, {"targets": [0, []]}, ArgumentError, r"targets: expected nodes of the graph, got \[\]"),
        (PATH, {"sources": [0, 2, 0]}, ArgumentError, "sources: expected every node once, got 0 twice"),
        (
            PATH,
            {"sources": [0, 2], "targets": [1, 2, 3]},
            ArgumentError,
            "every node on one side, got 2 on both",
        ),
        (
            PATH,
            {"sources": [0, 2], "targets": [1]},
            ArgumentError,
            "every node on one side, got 3 on neither",
        ),
        (PATH, {"sources": [0, 1]}, ArgumentError, "graph: .*, got source 0 to source 1"),
        (PATH, {"targets": [0, 1]}, ArgumentError, "graph: .*, got target 0 to target 1"),
        (DIRECTED, {"sources": [0, 1]}, ArgumentError, "graph: .*, got target 3 to source 1"),
        (TWICE, {"sources": [0, 2]}, ArgumentError, r"edges: expected each edge once, got \(0, 0\) twice"),
        (LOOP, {"sources": [0, 2]}, ArgumentError, "graph: .*, got target 1 to target 1"),
        (PATH, {"sources": []}, ArgumentError, "sources: expected at least one node"),
        (PATH, {"sources": range(4)}, ArgumentError, "targets: expected at least one node"),
        (nx.Graph(), {}, ArgumentError, "sources: expected at least one node"),
    ],
)
def test_what_is_no_layer(graph: Any, given: dict[str, Any], kind: type[GbnnError], message: str) -> None:
    with pytest.raises(kind, match=message):
        wire.from_networkx(graph, **given)


# -- SciPy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_every_format(form: str) -> None:
    matrix = sp.random_array((12, 9), density=0.3, format=form, rng=np.random.default_rng(0))
    edges = wire.from_scipy(matrix)
    assert edges.shape == (12, 9)
    assert pairs(edges) == sorted(zip(*(side.tolist() for side in matrix.toarray().nonzero()), strict=True))


def test_what_is_stored_is_an_edge_whatever_its_value() -> None:
    matrix = sp.coo_array(([0.0, np.nan, -1.0], ([0, 1, 2], [1, 0, 1])), shape=(3, 2))
    assert pairs(wire.from_scipy(matrix)) == [(0, 1), (1, 0), (2, 1)]


def test_what_is_no_matrix() -> None:
    with pytest.raises(KindError, match="matrix: expected a 2-D SciPy sparse matrix or array, got ndarray"):
        wire.from_scipy(np.eye(3))
    with pytest.raises(ArgumentError, match="edges: expected each edge once"):
        wire.from_scipy(sp.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(2, 2)))
    with pytest.raises(ArgumentError, match="in_features"):
        wire.from_scipy(sp.coo_array((0, 3)))
