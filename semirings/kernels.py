"""Compiled loops over edges (numba): the products and adjoints GraphBLAS has no fast kernel for.

Every activation array here is transposed, shape (neurons, batch), C-contiguous: one neuron's values over
the batch lie together, and the innermost loop runs along them. Scalar functions of a semiring come in as
compiled functions and are inlined: numba makes one kernel per semiring and dtype.

`benchmarks/routes.py` measures each against the best GraphBLAS call; only what is at least 1.5 times faster
is used. Compiling takes about half a second for a product and two for an adjoint, per semiring and dtype,
once a process.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from gbnn.errors import GbnnError

Array = np.ndarray[Any, Any]

# Numba's fallback thread pool ("workqueue", where no OpenMP runtime is installed) aborts the process when
# two threads start parallel kernels at once. One lock around every launch costs a fraction of a microsecond.
_LAUNCH = threading.Lock()


def by_neuron(array: Array) -> Array:
    """Return the transpose of an activation array, to be read only.

    Numba compiles anew for an array that cannot be written (a mapped file); so none of those read can.
    """
    view = array.T
    view.flags.writeable = False
    return view


# Below this many edges x samples one thread serves: it takes a few microseconds, about what it costs to wake
# the others, and thousands where something else runs on their cores.
_ALONE = 2**16


def _launched(kernel: Any) -> Callable[..., None]:
    names = list(inspect.signature(kernel.py_func).parameters)
    x, edges = names.index("x"), names.index("targets" if "targets" in names else "sources")

    def launch(*arguments: Any) -> None:
        few = arguments[edges].size * arguments[x].shape[1] <= _ALONE
        with _LAUNCH:
            threads = numba.get_num_threads()
            try:
                if few:
                    numba.set_num_threads(1)
                kernel(*arguments)
            except SystemError as error:  # numba's, when a function raises inside a parallel loop
                wanted = "scalar functions that raise no exception"
                raise GbnnError("semiring", wanted, repr(error.__cause__)) from error
            finally:
                numba.set_num_threads(threads)

    launch.__doc__ = kernel.__doc__
    return launch


@_launched
@njit(parallel=True)
def product(add, multiply, x, ids, starts, sources, values, y):  # type: ignore[no-untyped-def]
    """y[j] = y[j] ⊕ (⊕ over edges into j) x[i] ⊗ w, edges grouped by target."""
    batch = x.shape[1]
    for k in prange(ids.size):
        out = y[ids[k]]
        for e in range(starts[k], starts[k + 1]):
            row = x[sources[e]]
            w = values[e]
            for b in range(batch):
                out[b] = add(out[b], multiply(row[b], w))


@_launched
@njit(parallel=True)
def count_ties(multiply, x, ids, starts, sources, values, y, count):  # type: ignore[no-untyped-def]
    """count[j] += how many edges into j give a term equal to y[j], edges grouped by target."""
    batch = x.shape[1]
    for k in prange(ids.size):
        j = ids[k]
        for e in range(starts[k], starts[k + 1]):
            row = x[sources[e]]
            w = values[e]
            for b in range(batch):
                if y.dtype.type(multiply(row[b], w)) == y[j, b]:
                    count[j, b] += 1


@_launched
@njit(parallel=True)
def adjoint(  # type: ignore[no-untyped-def]
    multiply, partials, selective, x, ids, starts, targets, values, y, dy, dx, dw, inputs
):
    """Both gradients in one pass, edges grouped by source.

    dx[i] += dy[j]·∂y/∂x and dw[e] = Σ over the batch of dy[j]·∂y/∂w. Where dy is zero nothing is
    evaluated: an output that cannot pass a gradient (an infinite one) may have undefined partials.
    A selective ⊕ passes gradients only through the terms that are the output. Those are found as the
    forward pass rounded them: a scalar function may compute in float64 what y holds in float32.
    """
    batch = x.shape[1]
    for k in prange(ids.size):
        i = ids[k]
        row = x[i]
        for e in range(starts[k], starts[k + 1]):
            j = targets[e]
            w = values[e]
            total = dy.dtype.type(0)
            for b in range(batch):
                g = dy[j, b]
                if g != 0:
                    if selective and y.dtype.type(multiply(row[b], w)) != y[j, b]:
                        continue
                    by_x, by_w = partials(row[b], w, y[j, b])
                    total += g * by_w
                    if inputs:
                        dx[i, b] += g * by_x
            dw[e] = total


@njit
def bias_adjoint(partials, selective, one, bias, y, dy, dbias):  # type: ignore[no-untyped-def]
    """Gradient of a bias: the edge from a constant input of value `one`.

    Not parallel: it is the work of one edge a target, and compiling is several times faster so.
    """
    for j in range(bias.size):
        total = dy.dtype.type(0)
        for b in range(dy.shape[1]):
            g = dy[j, b]
            if g != 0 and (not selective or bias[j] == y[j, b]):
                total += g * partials(one, bias[j], y[j, b])[1]
        dbias[j] = total


# Sums over the batch may be reordered so that they run in vector registers; NaN and infinity stay exact.
_VECTOR = {"reassoc", "contract", "nsz"}


def _kept_on_disk(function: Callable[..., Any]) -> Any:
    """Compile, and keep the result for later processes where there is a folder to keep it in."""
    try:
        return njit(parallel=True, cache=True, fastmath=_VECTOR)(function)
    except RuntimeError:  # numba's "no locator available": installation and home are both read-only
        return njit(parallel=True, fastmath=_VECTOR)(function)


@_launched
@_kept_on_disk
def sampled_product(x, dy, ids, starts, targets, dw):  # type: ignore[no-untyped-def]
    """dw[e] = <x[i], dy[j]> for every edge (the sampled dense-dense product), edges grouped by source."""
    batch = x.shape[1]
    for k in prange(ids.size):
        row = x[ids[k]]
        for e in range(starts[k], starts[k + 1]):
            other = dy[targets[e]]
            total = x.dtype.type(0)
            for b in range(batch):
                total += row[b] * other[b]
            dw[e] = total


@_launched
@_kept_on_disk
def sampled_pairs(x, dy, sources, targets, out):  # type: ignore[no-untyped-def]
    """out[k] = <x[sources[k]], dy[targets[k]]> for any list of pairs."""
    for k in prange(sources.size):
        row = x[sources[k]]
        other = dy[targets[k]]
        total = x.dtype.type(0)
        for b in range(x.shape[1]):
            total += row[b] * other[b]
        out[k] = total
