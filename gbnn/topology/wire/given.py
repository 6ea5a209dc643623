"""Edges of graphs made elsewhere: by SciPy or NetworkX."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import networkx as nx

from gbnn.convert import of_scipy
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError

__all__ = ["from_networkx", "from_scipy"]


def from_scipy(matrix: Any) -> Edges:
    """Return the stored entries of a SciPy sparse matrix or array as edges; values do not matter, even 0.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array, shape (in, out)
        Of any format.

    Returns
    -------
    Edges

    Raises
    ------
    ArgumentError, KindError
        If it is none, its arrays do not fit together, or an entry is stored twice.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn import layers
    >>> from gbnn.topology import wire
    >>> band = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(100, 100))
    >>> layers.Linear.from_edges(wire.from_scipy(band), seed=0)
    Linear(100 x 100, nnz=298, density=0.0298, plus_times, bias)
    """
    given = of_scipy(matrix)
    return Edges.from_coo(given.sources, given.targets, given.shape)[0]


def from_networkx(
    graph: nx.Graph,
    sources: Iterable[Hashable] | None = None,
    targets: Iterable[Hashable] | None = None,
) -> Edges:
    """Return the edges of a bipartite NetworkX graph.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Directed edges go from source to target. Edge data does not matter.
    sources, targets : iterable of nodes, optional
        Sources and targets in the order of their indices. Without `targets`: all other nodes, in the graph's
        order; the same for sources. Without both: nodes whose attribute "bipartite" is 0 and 1, NetworkX's
        convention, in the graph's order.

    Returns
    -------
    Edges
        Of shape (number of sources, number of targets).

    Raises
    ------
    KindError
        If it is no graph of NetworkX.
    ArgumentError
        If a node is on no side, on both or twice, is unknown, or a side is empty; if an edge joins nodes of
        one side, goes from target to source, or occurs twice.

    Examples
    --------
    >>> import networkx as nx
    >>> from gbnn.topology import wire
    >>> graph = nx.complete_bipartite_graph(2, 3)  # nodes 0 and 1, nodes 2 to 4
    >>> wire.from_networkx(graph).shape
    (2, 3)
    >>> path = nx.path_graph(["a", "b", "c"])
    >>> edges = wire.from_networkx(path, sources=["c", "a"])
    >>> edges.sources, edges.targets
    (array([0, 1]), array([0, 0]))
    """
    if not isinstance(graph, nx.Graph):  # the base class of them all
        raise KindError("graph", "a NetworkX graph", type(graph).__name__)
    source_of, target_of = _sides(graph, sources, targets)
    ends: tuple[list[int], list[int]] = ([], [])
    for u, v in graph.edges():
        source, target = (v, u) if u in target_of and not graph.is_directed() else (u, v)
        if source not in source_of or target not in target_of:
            wanted = "edges from a source to a target only"
            raise ArgumentError("graph", wanted, f"{_named(u, source_of)} to {_named(v, source_of)}")
        ends[0].append(source_of[source])
        ends[1].append(target_of[target])
    return Edges.from_coo(*ends, (len(source_of), len(target_of)))[0]


Side = dict[Hashable, int]


def _named(node: Hashable, sources: Side) -> str:
    return f"{'source' if node in sources else 'target'} {node!r}"


def _sides(graph: nx.Graph, sources: Any, targets: Any) -> tuple[Side, Side]:
    """Return the index of every source, and of every target: each node is one of them."""
    if sources is None and targets is None:
        sources, targets = _marked(graph)
    first = None if sources is None else _indexed("sources", sources, graph)
    second = None if targets is None else _indexed("targets", targets, graph)
    first = _rest(graph, second) if first is None else first
    second = _rest(graph, first) if second is None else second
    for node in graph:
        if (node in first) == (node in second):
            what = f"{node!r} {'on both' if node in first else 'on neither'}"
            raise ArgumentError("sources, targets", "every node on one side", what)
    if not first or not second:
        empty = "targets" if first else "sources"
        raise ArgumentError(empty, "at least one node", "none")
    return first, second


def _marked(graph: nx.Graph) -> tuple[list[Hashable], list[Hashable]]:
    sides: tuple[list[Hashable], list[Hashable]] = ([], [])
    for node, side in graph.nodes(data="bipartite"):
        if side not in (0, 1):
            wanted = 'attribute "bipartite" 0 or 1 at every node, or lists of sources or targets'
            raise ArgumentError("graph", wanted, f"{side!r} at {node!r}")
        sides[side].append(node)
    return sides


def _indexed(where: str, nodes: Any, graph: nx.Graph) -> Side:
    try:
        listed = list(nodes)
    except TypeError:
        raise KindError(where, "nodes of the graph", repr(nodes)) from None
    index: Side = {}
    for node in listed:
        if node not in graph:
            raise ArgumentError(where, "nodes of the graph", repr(node))
        if node in index:
            raise ArgumentError(where, "every node once", f"{node!r} twice")
        index[node] = len(index)
    return index


def _rest(graph: nx.Graph, others: Any) -> Side:
    return {node: k for k, node in enumerate(node for node in graph if node not in others)}
