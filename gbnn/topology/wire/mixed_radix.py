"""Networks with equally many paths between every input and every output: RadiX-Net and butterflies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.topology.wire.maker import check_count

__all__ = ["butterfly", "radix_net"]

Array = np.ndarray[Any, Any]


def radix_net(
    radices: Sequence[int] | Sequence[Sequence[int]], copies: Sequence[int] | None = None
) -> list[Edges]:
    """Make the graphs of all layers of a RadiX-Net: one layer a radix, equally many paths everywhere.

    In the layer of radix r, neuron i goes to i, i + p, i + 2p, ... i + (r - 1)p modulo N, where p is the
    product of the radices before it in its system and N the product of a whole system. So a system of radices
    leads from each neuron to each in exactly one way; further systems multiply the paths.

    Parameters
    ----------
    radices : sequence of int, or of sequences of int
        A mixed-radix system, or several that follow each other; each radix is 2 or more. All systems have the
        same product N, but that of the last of several may be a divisor of N.
    copies : sequence of int, optional
        B[0], ... B[layers]: every neuron between layers k - 1 and k becomes B[k] neurons with the same edges
        (the Kronecker product of a block of ones and the layer). Default: all 1.

    Returns
    -------
    list of Edges
        Layer k has shape (N·B[k], N·B[k + 1]), fan-in r·B[k] and fan-out r·B[k + 1].

    Raises
    ------
    ArgumentError, KindError
        If the radices are no such systems, or `copies` are not one more than layers.

    Notes
    -----
    Robinett and Kepner, "RadiX-Net: structured sparse matrices for deep neural networks", IEEE IPDPS
    Workshops, 2019. The networks of the Sparse DNN GraphChallenge (Kepner et al., 2019) are of this kind,
    with 32 edges a neuron: ``radix_net([[32, 32]] * 60)`` has 120 layers of 1024 neurons, as one of them.

    Examples
    --------
    >>> from gbnn.topology import wire
    >>> first, second = wire.radix_net([2, 3])
    >>> list(zip(second.sources.tolist(), second.targets.tolist()))[:6]
    [(0, 0), (0, 2), (0, 4), (1, 1), (1, 3), (1, 5)]
    >>> [layer.shape for layer in wire.radix_net([[2, 2], [4]], copies=[1, 3, 3, 2])]
    [(4, 12), (12, 12), (12, 8)]
    """
    systems = _systems(radices)
    size = prod(systems[0])
    layers = sum(len(system) for system in systems)
    repeats = [1] * (layers + 1) if copies is None else _integers("copies", copies, 1)
    if len(repeats) != layers + 1:
        raise ArgumentError("copies", f"{layers + 1} numbers, one more than layers", len(repeats))
    made: list[Edges] = []
    for system in systems:
        step = 1
        for radix in system:
            before, after = repeats[len(made) : len(made) + 2]
            made.append(_shifts(size, step, radix, before, after))
            step *= radix
    return made


def butterfly(n: int, radix: int = 2) -> list[Edges]:
    """Make the graphs of all stages of a butterfly network, that of the fast Fourier transform.

    Number the neurons in base `radix`: in stage k, i is connected to all that differ from it in digit k at
    most. After log n stages there is exactly one path from every input to every output, with radix·n edges a
    stage.

    Parameters
    ----------
    n : int
        Width of every layer: a power of `radix`, `radix` or more.
    radix : int
        2 or more.

    Returns
    -------
    list of Edges
        A graph of shape (n, n) for each stage.

    Raises
    ------
    ArgumentError, KindError
        If n is no power of `radix`.

    Notes
    -----
    Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965; as layers of
    a network: Dao et al., "Learning fast algorithms for linear transforms using butterfly factorizations",
    ICML 2019.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology import wire
    >>> stages = wire.butterfly(8)
    >>> [stage.nnz for stage in stages]
    [16, 16, 16]
    >>> list(zip(stages[1].sources.tolist(), stages[1].targets.tolist()))[:4]
    [(0, 0), (0, 2), (1, 1), (1, 3)]
    >>> models.mlp([8, 8, 8, 8], wiring=stages).nnz
    48
    """
    radix = check_int("radix", radix, 2)
    n = check_int("n", n, radix)
    steps = [1]
    while steps[-1] * radix < n:
        steps.append(steps[-1] * radix)
    if steps[-1] * radix != n:
        raise ArgumentError("n", f"a power of {radix}", n)
    check_count((n, n), radix * n)
    sources = np.repeat(np.arange(n), radix)
    others = np.tile(np.arange(radix), n)
    made = []
    for step in steps:
        digit = sources // step % radix
        made.append(Edges.from_coo(sources, sources + (others - digit) * step, (n, n))[0])
    return made


def _shifts(size: int, step: int, radix: int, before: int, after: int) -> Edges:
    """Connect i to i, i + step, ... i + (radix - 1)·step modulo size; then copy the neurons of both sides."""
    shape = (size * before, size * after)
    check_count(shape, size * radix * before * after)
    # Copy c of neuron i is neuron c·size + i, as in the Kronecker product of ones and the layer.
    sources = np.arange(shape[0])[:, None, None]
    reached = (sources + step * np.arange(radix)[:, None]) % size
    targets = reached + size * np.arange(after)
    sources = np.broadcast_to(sources, targets.shape)
    return Edges.from_coo(sources.ravel(), targets.ravel(), shape)[0]


def _integers(where: str, given: Any, low: int) -> list[int]:
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
        raise KindError(where, "a sequence of integers", repr(given))
    return [check_int(f"{where}[{k}]", number, low) for k, number in enumerate(given)]


def _systems(radices: Any) -> list[list[int]]:
    """Return the systems of radices, checked."""
    if not isinstance(radices, Sequence | np.ndarray) or isinstance(radices, str | bytes):
        raise KindError("radices", "a sequence of integers, or of such sequences", repr(radices))
    nested = any(isinstance(part, Sequence | np.ndarray) for part in radices)
    given = list(radices) if nested else [radices]
    systems = [_integers(f"radices[{k}]" if nested else "radices", part, 2) for k, part in enumerate(given)]
    if not all(systems):
        raise ArgumentError("radices", "at least one radix in every system", radices)
    size = prod(systems[0])
    for k, system in enumerate(systems[1:], 1):
        if prod(system) != size and (k < len(systems) - 1 or size % prod(system)):
            last = f"{size}, or a divisor of it" if k == len(systems) - 1 else size
            raise ArgumentError(f"radices[{k}]", f"numbers whose product is {last}", system)
    return systems
