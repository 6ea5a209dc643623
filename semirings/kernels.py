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
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from gbnn.engine import kept_on_disk
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


def start(kernel: Any, work: int, *arguments: Any) -> None:
    """Start a compiled kernel under the one lock, by one thread if there are few edges x samples (`work`)."""
    with _LAUNCH:
        threads = numba.get_num_threads()
        try:
            if work <= _ALONE:
                numba.set_num_threads(1)
            kernel(*arguments)
        except SystemError as error:  # numba's, when a function raises inside a parallel loop
            wanted = "scalar functions that raise no exception"
            raise GbnnError("semiring", wanted, repr(error.__cause__)) from error
        finally:
            numba.set_num_threads(threads)


def launched(kernel: Any) -> Callable[..., None]:
    """Return a compiled kernel that is started under the one lock, by one thread if there is little to do."""
    names = list(inspect.signature(kernel.py_func).parameters)
    x, edges = names.index("x"), names.index(next(n for n in ("targets", "sources", "out") if n in names))

    def launch(*arguments: Any) -> None:
        start(kernel, arguments[edges].size * arguments[x].shape[1], *arguments)

    launch.__doc__ = kernel.__doc__
    return launch


@launched
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


@launched
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


@launched
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


_vectorized = partial(kept_on_disk, parallel=True, fastmath=_VECTOR)

# As written: sums run in the order of the samples, every product and every sum rounded.
in_order = partial(kept_on_disk, parallel=True, fastmath=False)
_one_thread = partial(kept_on_disk, parallel=False)


@launched
@_vectorized
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


@launched
@_vectorized
def sampled_pairs(x, dy, sources, targets, out):  # type: ignore[no-untyped-def]
    """out[k] = <x[sources[k]], dy[targets[k]]> for any list of pairs."""
    for k in prange(sources.size):
        row = x[sources[k]]
        other = dy[targets[k]]
        total = x.dtype.type(0)
        for b in range(x.shape[1]):
            total += row[b] * other[b]
        out[k] = total


@launched
@in_order
def exact_pairs(x, dy, sources, targets, out):  # type: ignore[no-untyped-def]
    """out[k] = <x[sources[k]], dy[targets[k]]>, summed in float64 in the order of the samples.

    The same bits for a pair whatever the other pairs, the threads and the kernel (`exact_block`).
    Four pairs at a time: one sum waits for its own last addition, and three others run meanwhile.
    """
    last = sources.size - 1
    for quarter in prange((sources.size + 3) // 4):
        k = 4 * quarter
        l, m, n = min(k + 1, last), min(k + 2, last), min(k + 3, last)  # noqa: E741
        x_k, x_l, x_m, x_n = x[sources[k]], x[sources[l]], x[sources[m]], x[sources[n]]
        dy_k, dy_l, dy_m, dy_n = dy[targets[k]], dy[targets[l]], dy[targets[m]], dy[targets[n]]
        s_k = s_l = s_m = s_n = 0.0
        for b in range(x.shape[1]):
            s_k += np.float64(x_k[b]) * np.float64(dy_k[b])
            s_l += np.float64(x_l[b]) * np.float64(dy_l[b])
            s_m += np.float64(x_m[b]) * np.float64(dy_m[b])
            s_n += np.float64(x_n[b]) * np.float64(dy_n[b])
        out[k], out[l], out[m], out[n] = s_k, s_l, s_m, s_n


@launched
@in_order
def exact_block(x, dy, out):  # type: ignore[no-untyped-def]
    """out[i, j] = what `exact_pairs` gives, to the bit, for all of x (rows, batch) and dy (batch, columns).

    Sums of a row run side by side in vector registers, each in the order of the samples. A zero in x adds
    nothing where dy is finite.
    """
    for i in prange(x.shape[0]):
        row = out[i]
        row[:] = 0.0
        for b in range(x.shape[1]):
            v = np.float64(x[i, b])
            if v != 0:
                for j in range(dy.shape[1]):
                    row[j] += v * np.float64(dy[b, j])


# A product and the sum it goes into may be rounded once; sums stay in the order they are written in.
_one_thread_fused = partial(kept_on_disk, parallel=False, fastmath={"contract"})


@_one_thread_fused
def plus_times(x, ids, starts, sources, values, y):  # type: ignore[no-untyped-def]
    """y[j] += Σ over edges into j of x[i]·w, edges grouped by target: `product` for a small plus_times.

    Four edges at a time, so that y is read and written once for four. In one thread, as waking another costs
    as much as it saves; and kept on disk, which `product` cannot be, as it takes functions.
    """
    batch = x.shape[1]
    for k in range(ids.size):
        out = y[ids[k]]
        stop = starts[k + 1]
        whole = stop - (stop - starts[k]) % 4
        for e in range(starts[k], whole, 4):
            x_0, x_1, x_2, x_3 = x[sources[e]], x[sources[e + 1]], x[sources[e + 2]], x[sources[e + 3]]
            w_0, w_1, w_2, w_3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            for b in range(batch):
                out[b] += (x_0[b] * w_0 + x_1[b] * w_1) + (x_2[b] * w_2 + x_3[b] * w_3)
        for e in range(whole, stop):
            row = x[sources[e]]
            w = values[e]
            for b in range(batch):
                out[b] += row[b] * w


@_one_thread
def _reaching(bits, low, mask, out):  # type: ignore[no-untyped-def]
    found = 0
    whole = bits.size // 64 * 64
    for start in range(0, whole, 64):
        part = bits[start : start + 64]
        top = mask & low & 0
        for k in range(part.size):  # a length the compiler knew would be unrolled, and not run in vectors
            top = max(top, part[k] & mask)
        if top >= low:
            for k in range(64):
                if part[k] & mask >= low:
                    out[found] = start + k
                    found += 1
    for k in range(whole, bits.size):
        if bits[k] & mask >= low:
            out[found] = k
            found += 1
    return found


def reaching(values: Array, low: Any, out: Array) -> Array:
    """Return the positions, ascending, where |value| >= low or value is NaN: the start of `out`, filled.

    Without its sign bit a float compares like an integer, and NaN is above infinity.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (k,), contiguous
    low : scalar of the same dtype, not negative
    out : ndarray of int64, shape (k,) or longer
    """
    integer = np.dtype(f"i{values.itemsize}")
    mask = integer.type(np.iinfo(integer).max)
    bound = np.abs(values.dtype.type(low)).view(integer)
    return out[: _reaching(values.view(integer), bound, mask, out)]
