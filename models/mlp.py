"""`mlp`: a multi-layer perceptron of sparse layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gbnn.edges import check_shape
from gbnn.errors import ArgumentError, KindError, check_float, check_int, generator
from gbnn.layers import BatchNorm, Chain, Dense, Dropout, Layer, LayerNorm, Linear, activation as named
from gbnn.semirings import Semiring, plus_times
from gbnn.topology.allocate import Allocation, erdos_renyi, uniform

__all__ = ["mlp"]

ALLOCATIONS = {f.__name__: f for f in (erdos_renyi, uniform)}
NORMS: dict[str, Callable[..., Layer]] = {"batch": BatchNorm, "layer": LayerNorm}


def mlp(
    widths: Sequence[int],
    *,
    nnz: int | Sequence[int] | None = None,
    density: float | Sequence[float] | None = None,
    allocation: str | Allocation = "erdos_renyi",
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
        The same as a share of all places, in (0, 1]. Give either `nnz` or `density`.
    allocation : str or callable
        "erdos_renyi" (in proportion to in + out: small layers get denser), "uniform", or a function
        ``(shapes, total) -> edges per layer``.
    activation : str or callable
        A name of `gbnn.layers.activation`, or a function that makes a layer.
    semiring : Semiring
        What every layer computes in.
    bias : bool, optional
        Default: in plus_times only.
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
        If sizes make no sense or more edges are asked for than there are places.

    Examples
    --------
    >>> from gbnn import models
    >>> model = models.mlp([784, 1000, 10], nnz=[40_000, 5_000], seed=0)
    >>> model.nnz
    45000
    >>> models.mlp([784, 300, 100, 10], density=0.05, seed=0).nnz  # 5 % of 266,200
    13310
    """
    shapes = _shapes(widths)
    counts = _counts(shapes, nnz, density, allocation)
    rng = generator("seed", seed)
    if not isinstance(semiring, Semiring):
        raise KindError("semiring", "a gbnn Semiring", type(semiring).__name__)
    if normalize is not None and normalize not in NORMS:
        raise ArgumentError("normalize", f"None or one of {sorted(NORMS)}", normalize)
    check_float("dropout", dropout, 0, 1)
    with_bias = semiring is plus_times if bias is None else bool(bias)
    made: list[Layer] = []
    for i, ((rows, columns), count) in enumerate(zip(shapes, counts, strict=True)):
        options: dict[str, Any] = {"bias": with_bias, "dtype": dtype, "seed": rng}
        if semiring is plus_times and count == rows * columns:
            made.append(Dense.random(rows, columns, **options))
        else:
            made.append(Linear.random(rows, columns, nnz=count, semiring=semiring, **options))
        if i < len(shapes) - 1:
            if normalize is not None:
                made.append(NORMS[normalize](columns, dtype=dtype))
            made.append(named(activation) if isinstance(activation, str) else activation())
            if dropout:
                made.append(Dropout(dropout, rng))
    return Chain(*made)


def _shapes(widths: Sequence[int]) -> list[tuple[int, int]]:
    try:
        sizes = list(widths)
    except TypeError:
        raise KindError("widths", "a sequence of integers", type(widths).__name__) from None
    if len(sizes) < 2:
        raise ArgumentError("widths", "at least an input and an output width", widths)
    for i, size in enumerate(sizes):
        check_int(f"widths[{i}]", size, 1)
    return [check_shape(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)]


def _counts(
    shapes: list[tuple[int, int]],
    nnz: int | Sequence[int] | None,
    density: float | Sequence[float] | None,
    allocation: str | Allocation,
) -> list[int]:
    if (nnz is None) == (density is None):
        raise ArgumentError("nnz, density", "exactly one of them", "neither" if nnz is None else "both")
    places = [rows * columns for rows, columns in shapes]
    name, given = ("nnz", nnz) if density is None else ("density", density)
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        if len(given) != len(shapes):
            raise ArgumentError(name, f"{len(shapes)} numbers, one a layer", len(given))
        if density is None:
            return [
                check_int(f"nnz[{k}]", n, 0, most) for k, (n, most) in enumerate(zip(given, places, strict=True))
            ]
        shares = [check_float(f"density[{k}]", d, 0, 1, open_low=True) for k, d in enumerate(given)]
        return [round(share * most) for share, most in zip(shares, places, strict=True)]
    if density is None:
        total = check_int("nnz", nnz, 0, sum(places))
    else:
        total = round(check_float("density", density, 0, 1, open_low=True) * sum(places))
    if isinstance(allocation, str):
        if allocation not in ALLOCATIONS:
            raise ArgumentError("allocation", f"one of {sorted(ALLOCATIONS)}, or a function", allocation)
        allocation = ALLOCATIONS[allocation]
    return allocation(shapes, total)
