"""`mlp`: a multi-layer perceptron of sparse layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gbnn.edges import Edges, check_shape
from gbnn.errors import ArgumentError, KindError, check_float, check_int, generator
from gbnn.layers import BatchNorm, Chain, Dense, Dropout, Layer, LayerNorm, Linear
from gbnn.layers import activation as named
from gbnn.layers.selection import Selection
from gbnn.semirings import Semiring, plus_times
from gbnn.topology import wire
from gbnn.topology.allocate import Allocation, by_fan_in, by_layer_fan_in, erdos_renyi, erk, uniform
from gbnn.topology.wire import Wiring
from gbnn.weights import real_dtype

__all__ = ["mlp"]

ALLOCATIONS = {f.__name__: f for f in (erdos_renyi, erk, uniform, by_fan_in, by_layer_fan_in)}
NORMS: dict[str, Callable[..., Layer]] = {"batch": BatchNorm, "layer": LayerNorm}


def mlp(
    widths: Sequence[int],
    *,
    nnz: int | Sequence[int] | None = None,
    density: float | Sequence[float] | None = None,
    allocation: str | Allocation = "erdos_renyi",
    wiring: Wiring | Edges | Sequence[Wiring | Edges] = wire.random,
    activation: str | Callable[[], Layer] = "relu",
    semiring: Semiring = plus_times,
    bias: bool | None = None,
    dropout: float = 0.0,
    normalize: str | None = None,
    dtype: Any = np.float32,
    seed: int | np.random.Generator = 0,
) -> Chain:
    """Make a chain of sparse layers with an activation between them.

    Parameters
    ----------
    widths : sequence of int
        Neurons of every layer, input and output included: at least two.
    nnz : int or sequence of int, optional
        Edges in all, divided among the layers by `allocation`; or the edges of every layer.
    density : float or sequence of float, optional
        The same as a share of all places, in (0, 1]; ``[0.01, 0.01, 1.0]`` keeps the last layer dense. Give
        either `nnz` or `density`, or neither where `wiring` knows the number of edges.
    allocation : str or callable
        "erdos_renyi" (in proportion to in + out: small layers get denser), "uniform", or a function
        ``(shapes, total) -> edges per layer``.
    wiring : callable or Edges, or sequence of them
        Where the edges go: a maker of `gbnn.topology.wire` for every layer, or one for each; or their graphs.
    activation : str or callable
        A name of `gbnn.layers.activation`, or a function that makes a layer.
    semiring : Semiring
        What every layer computes in.
    bias : bool, optional
        Default: in plus_times only, and not before k-winners or a threshold: a bias on all neurons of a layer
        would make it dense.
    dropout : float
        Rate of dropout after each hidden activation.
    normalize : {None, "batch", "layer"}
        Normalization before each hidden activation.
    dtype : dtype
        float32 or float64.
    seed : int or numpy.random.Generator

    Returns
    -------
    Chain
        A layer that gets every edge it can have is `Dense` in plus_times, else `Linear`.

    Raises
    ------
    ArgumentError, KindError
        If sizes make no sense, more edges are asked for than there are places, or the wiring cannot have
        as many.

    Examples
    --------
    >>> from gbnn import models
    >>> model = models.mlp([784, 1000, 10], nnz=[40_000, 5_000], seed=0)
    >>> model.nnz
    45000
    >>> models.mlp([784, 300, 100, 10], density=0.05, seed=0).nnz  # 5 % of 266,200
    13310
    >>> from gbnn.topology import wire
    >>> models.mlp([784, 300, 10], density=[0.1, 1.0], wiring=wire.regular, seed=0)
    Chain(Linear(784 x 300, nnz=23520, density=0.1, plus_times, bias), Relu(), Dense(300 x 10, bias))
    >>> models.mlp([6, 6, 6], wiring=wire.radix_net([2, 3]), seed=0).nnz
    30
    """
    shapes = _shapes(widths)
    makers = _makers(wiring, len(shapes))
    if nnz is None and density is None and wiring is not wire.random:
        counts: Sequence[int | None] = [None] * len(shapes)
    else:
        counts = _counts(shapes, nnz, density, allocation)
    rng = generator("seed", seed)
    if not isinstance(semiring, Semiring):
        raise KindError("semiring", "a gbnn Semiring", type(semiring).__name__)
    if bias is not None and not isinstance(bias, (bool, np.bool_)):
        raise KindError("bias", "True, False or None", repr(bias))
    if normalize is not None and not isinstance(normalize, str):
        raise KindError("normalize", "None or a name", repr(normalize))
    if normalize is not None and normalize not in NORMS:
        raise ArgumentError("normalize", f"None or one of {sorted(NORMS)}", repr(normalize))
    if check_float("dropout", dropout, 0, 1) == 1:
        raise ArgumentError("dropout", "a number in [0, 1)", dropout)
    make = _activation(activation)
    options: dict[str, Any] = {
        "dtype": real_dtype("dtype", dtype),
        "seed": rng,
    }
    made: list[Layer] = []
    for i, ((rows, columns), count) in enumerate(zip(shapes, counts, strict=True)):
        places = rows * columns
        if semiring is not plus_times or count != places:
            edges = _wired(makers[i], rng, (rows, columns), count)
            count = edges.nnz
        after = make() if i < len(shapes) - 1 else None
        carries = semiring is plus_times and not isinstance(after, Selection) if bias is None else bool(bias)
        if semiring is plus_times and count == places:
            made.append(Dense.random(rows, columns, bias=carries, **options))
        else:
            made.append(Linear.from_edges(edges, semiring=semiring, bias=carries, **options))
        if after is not None:
            if normalize is not None:
                made.append(NORMS[normalize](columns, dtype=dtype))
            made.append(after)
            if dropout:
                made.append(Dropout(dropout, rng))
    return Chain(*made)


def _makers(wiring: Any, layers: int) -> list[Wiring]:
    """Return a graph maker for each layer."""
    given = list(wiring) if _is_list(wiring) else [wiring] * layers
    if len(given) != layers:
        raise ArgumentError("wiring", f"{layers} makers of graphs, one a layer", len(given))
    makers = [wire.fixed(one) if isinstance(one, Edges) else one for one in given]
    for maker in makers:
        if not callable(maker):
            raise KindError("wiring", "a function (rng, shape, nnz) -> Edges, or Edges", repr(maker))
    return makers


def _wired(maker: Wiring, rng: np.random.Generator, shape: tuple[int, int], count: int | None) -> Edges:
    edges = maker(rng, shape, count)
    if not isinstance(edges, Edges):
        raise KindError("wiring", "a function that returns Edges", f"one of {type(edges).__name__}")
    if edges.shape != shape or (count is not None and edges.nnz != count):
        wanted = f"{'the' if count is None else count} edges of a {shape[0]} x {shape[1]} layer"
        raise ArgumentError("wiring", wanted, f"{edges.nnz} of shape {edges.shape}")
    return edges


def _activation(activation: Any) -> Callable[[], Layer]:
    if isinstance(activation, str):
        named(activation)  # raises, with the names, also where there is no hidden layer
        return lambda: named(activation)
    if not callable(activation):
        raise KindError("activation", "a name, or a function that makes a layer", repr(activation))

    def make() -> Layer:
        layer = activation()
        if not isinstance(layer, Layer):
            raise KindError("activation", "a function that makes a layer", f"one of {type(layer).__name__}")
        return layer

    return make


def _shapes(widths: Any) -> list[tuple[int, int]]:
    if not _is_list(widths):
        raise KindError("widths", "a sequence of integers", repr(widths))
    sizes = [check_int(f"widths[{i}]", size, 1) for i, size in enumerate(widths)]
    if len(sizes) < 2:
        raise ArgumentError("widths", "at least an input and an output width", sizes)
    return [check_shape(a, b) for a, b in pairwise(sizes)]


def _counts(shapes: list[tuple[int, int]], nnz: Any, density: Any, allocation: str | Allocation) -> list[int]:
    """Return the edges of each layer."""
    if (nnz is None) == (density is None):
        raise ArgumentError("nnz, density", "exactly one of them", "neither" if nnz is None else "both")
    places = [rows * columns for rows, columns in shapes]
    divide = _divider(allocation)
    name, given = ("nnz", nnz) if density is None else ("density", density)
    if _is_list(given):
        if len(given) != len(shapes):
            raise ArgumentError(name, f"{len(shapes)} numbers, one a layer", len(given))
        each = [(f"{name}[{k}]", *pair) for k, pair in enumerate(zip(given, places, strict=True))]
        if density is None:
            return [check_int(where, count, 0, most) for where, count, most in each]
        return [_share_of(where, share, most) for where, share, most in each]
    if density is None:
        total = check_int("nnz", nnz, 0, sum(places))
    else:
        total = _share_of("density", density, sum(places))
    counts = divide(shapes, total)
    if not _is_list(counts) or len(counts) != len(shapes):
        raise ArgumentError("allocation", f"a function that returns {len(shapes)} counts", counts)
    for k, (count, most) in enumerate(zip(counts, places, strict=True)):
        check_int(f"allocation[{k}]", count, 0, most)
    if sum(counts) != total:
        raise ArgumentError("allocation", f"a function whose counts sum to {total}", counts)
    return [int(count) for count in counts]


def _is_list(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _share_of(where: str, share: Any, places: int) -> int:
    return round(check_float(where, share, 0, 1, open_low=True) * places)


def _divider(allocation: Any) -> Allocation:
    if isinstance(allocation, str):
        if allocation not in ALLOCATIONS:
            wanted = f"one of {sorted(ALLOCATIONS)}, or a function"
            raise ArgumentError("allocation", wanted, repr(allocation))
        return ALLOCATIONS[allocation]
    if not callable(allocation):
        raise KindError("allocation", "a name or a function (shapes, total) -> counts", repr(allocation))
    divide: Allocation = allocation
    return divide
