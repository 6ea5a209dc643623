"""Compiled steps of the optimizers, in place: one pass that reads the gradient and writes slots and values.

`positions` says which values the gradients belong to, ascending, each once; where it is shorter than
`gradient`, it is not looked at: the gradients are those of all values. Touched edges mostly follow one
another (those of a source do), so a pass goes from run to run; in a run the compiler puts several values into
a vector register. Each number is rounded where the rule in `optimizers`, in NumPy, rounds it: the bits are
the same.

`numbers` is a tuple in the dtype of the arrays. Functions given to a kernel could not be kept on disk, so
each rule has a kernel of its own; they differ in how many slots there are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import prange

from gbnn.engine import kept_on_disk

__all__ = ["adagrad", "adam", "are_ascending", "descent", "mark", "rmsprop", "rmsprop_momentum", "sgd"]

Array = np.ndarray[Any, Any]

CHUNK = 4096
"""Positions that a thread takes at a time."""

SHORT = 16
"""Values that are worth the start of a loop in vectors."""

_one_thread = partial(kept_on_disk, parallel=False, error_model="numpy")
_parallel = partial(kept_on_disk, parallel=True, fastmath=False, error_model="numpy")


def read_only(array: Array) -> Array:
    """Return a view that cannot be written: numba compiles anew for an array that can."""
    view = array.view()
    view.flags.writeable = False
    return view


NOWHERE = read_only(np.empty(0, dtype=np.int64))
"""What stands for all positions."""


@_one_thread
def _are_ascending(positions):  # type: ignore[no-untyped-def]
    wrong = 0
    for p in range(1, positions.size):  # to the end, as that runs in vectors
        wrong |= positions[p] <= positions[p - 1]
    return wrong == 0


def are_ascending(positions: Array, size: int) -> bool:
    """Return whether positions are in range, ascending, each there once.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.training.step_kernels import are_ascending
    >>> [are_ascending(np.array(positions), 3) for positions in ([1, 2], [1, 1], [0, 3])]
    [True, False, False]
    """
    if not positions.size:
        return True
    inside = positions[0] >= 0 and positions[-1] < size
    return bool(inside and _are_ascending(positions))


@_one_thread
def end_of_part(positions, p, stop):  # type: ignore[no-untyped-def]
    """Return where a run that begins at the p-th position ends, or SHORT further, if there is none."""
    shift = positions[p] - p
    q = min(p + SHORT, stop)
    if positions[q - 1] - (q - 1) != shift:
        return q
    while q + SHORT <= stop and positions[q + SHORT - 1] - (q + SHORT - 1) == shift:
        q += SHORT  # as positions ascend, those between go up by one, too
    while q < stop and positions[q] - q == shift:
        q += 1
    return q


@_parallel
def mark(positions, seen, count):  # type: ignore[no-untyped-def]
    """seen[positions] = count."""
    n = positions.size
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = end_of_part(positions, p, stop)
            low = positions[p]
            if positions[q - 1] - low == q - 1 - p:
                seen[low : low + q - p] = count
            else:
                for i in range(p, q):
                    seen[positions[i]] = count
            p = q


@_one_thread
def _descent(d, w, numbers):  # type: ignore[no-untyped-def]
    rate, decay = numbers
    if decay != 0:
        d += decay * w
    return w + d * -rate


@_parallel
def descent(positions, gradient, values, numbers):  # type: ignore[no-untyped-def]
    """One step of `optimizers.sgd` without momentum."""
    n = gradient.size
    everywhere = positions.size < n
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = stop if everywhere else end_of_part(positions, p, stop)
            low = p if everywhere else positions[p]
            high = low + q - p
            if everywhere or positions[q - 1] - low == q - 1 - p:
                g, w = gradient[p:q], values[low:high]
                for i in range(q - p):
                    w[i] = _descent(g[i], w[i], numbers)
            else:
                for i in range(p, q):
                    e = positions[i]
                    values[e] = _descent(gradient[i], values[e], numbers)
            p = q


@_one_thread
def _sgd(d, w, v, numbers):  # type: ignore[no-untyped-def]
    rate, keep, ahead, decay = numbers
    if decay != 0:
        d += decay * w
    v = v * keep + d
    return w + (d + keep * v if ahead != 0 else v) * -rate, v


@_parallel
def sgd(positions, gradient, values, velocity, numbers):  # type: ignore[no-untyped-def]
    """One step of `optimizers.sgd` with momentum; `ahead` is not 0 for Nesterov's."""
    n = gradient.size
    everywhere = positions.size < n
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = stop if everywhere else end_of_part(positions, p, stop)
            low = p if everywhere else positions[p]
            high = low + q - p
            if everywhere or positions[q - 1] - low == q - 1 - p:
                g, w, v = gradient[p:q], values[low:high], velocity[low:high]
                for i in range(q - p):
                    w[i], v[i] = _sgd(g[i], w[i], v[i], numbers)
            else:
                for i in range(p, q):
                    e = positions[i]
                    values[e], velocity[e] = _sgd(gradient[i], values[e], velocity[e], numbers)
            p = q


@_one_thread
def _adam(d, w, m, s, numbers):  # type: ignore[no-untyped-def]
    keep1, new1, keep2, new2, least, length, joined, apart = numbers
    if joined != 0:
        d += joined * w
    m = m * keep1 + new1 * d
    s = s * keep2 + new2 * d * d
    step = m / (np.sqrt(s) + least) * -length
    if apart != 0:
        step -= apart * w
    return w + step, m, s


@_parallel
def adam(positions, gradient, values, mean, square, numbers):  # type: ignore[no-untyped-def]
    """One step of `optimizers.adam`; `joined` decay goes into the gradient, `apart` is that of `adamw`."""
    n = gradient.size
    everywhere = positions.size < n
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = stop if everywhere else end_of_part(positions, p, stop)
            low = p if everywhere else positions[p]
            high = low + q - p
            if everywhere or positions[q - 1] - low == q - 1 - p:
                g, w, m, s = gradient[p:q], values[low:high], mean[low:high], square[low:high]
                for i in range(q - p):
                    w[i], m[i], s[i] = _adam(g[i], w[i], m[i], s[i], numbers)
            else:
                for i in range(p, q):
                    e = positions[i]
                    values[e], mean[e], square[e] = _adam(gradient[i], values[e], mean[e], square[e], numbers)
            p = q


@_one_thread
def _rmsprop(d, w, s, numbers):  # type: ignore[no-untyped-def]
    rate, keep, new, least, decay = numbers
    if decay != 0:
        d += decay * w
    s = s * keep + new * d * d
    return w + d / (np.sqrt(s) + least) * -rate, s


@_parallel
def rmsprop(positions, gradient, values, square, numbers):  # type: ignore[no-untyped-def]
    """One step of `optimizers.rmsprop` without momentum."""
    n = gradient.size
    everywhere = positions.size < n
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = stop if everywhere else end_of_part(positions, p, stop)
            low = p if everywhere else positions[p]
            high = low + q - p
            if everywhere or positions[q - 1] - low == q - 1 - p:
                g, w, s = gradient[p:q], values[low:high], square[low:high]
                for i in range(q - p):
                    w[i], s[i] = _rmsprop(g[i], w[i], s[i], numbers)
            else:
                for i in range(p, q):
                    e = positions[i]
                    values[e], square[e] = _rmsprop(gradient[i], values[e], square[e], numbers)
            p = q


@_one_thread
def _rmsprop_momentum(d, w, s, v, numbers):  # type: ignore[no-untyped-def]
    rate, keep, new, least, inertia, decay = numbers
    if decay != 0:
        d += decay * w
    s = s * keep + new * d * d
    v = v * inertia + d / (np.sqrt(s) + least)
    return w + v * -rate, s, v


@_parallel
def rmsprop_momentum(positions, gradient, values, square, velocity, numbers):  # type: ignore[no-untyped-def]
    """One step of `optimizers.rmsprop` with momentum."""
    n = gradient.size
    everywhere = positions.size < n
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = stop if everywhere else end_of_part(positions, p, stop)
            low = p if everywhere else positions[p]
            high = low + q - p
            if everywhere or positions[q - 1] - low == q - 1 - p:
                g, w, s, v = gradient[p:q], values[low:high], square[low:high], velocity[low:high]
                for i in range(q - p):
                    w[i], s[i], v[i] = _rmsprop_momentum(g[i], w[i], s[i], v[i], numbers)
            else:
                for i in range(p, q):
                    e = positions[i]
                    values[e], square[e], velocity[e] = _rmsprop_momentum(
                        gradient[i], values[e], square[e], velocity[e], numbers
                    )
            p = q


@_one_thread
def _adagrad(d, w, s, numbers):  # type: ignore[no-untyped-def]
    rate, least, decay = numbers
    if decay != 0:
        d += decay * w
    s = s + d * d
    return w + d / (np.sqrt(s) + least) * -rate, s


@_parallel
def adagrad(positions, gradient, values, square, numbers):  # type: ignore[no-untyped-def]
    """One step of `optimizers.adagrad`."""
    n = gradient.size
    everywhere = positions.size < n
    for chunk in prange((n + CHUNK - 1) // CHUNK):
        p = chunk * CHUNK
        stop = min(n, p + CHUNK)
        while p < stop:
            q = stop if everywhere else end_of_part(positions, p, stop)
            low = p if everywhere else positions[p]
            high = low + q - p
            if everywhere or positions[q - 1] - low == q - 1 - p:
                g, w, s = gradient[p:q], values[low:high], square[low:high]
                for i in range(q - p):
                    w[i], s[i] = _adagrad(g[i], w[i], s[i], numbers)
            else:
                for i in range(p, q):
                    e = positions[i]
                    values[e], square[e] = _adagrad(gradient[i], values[e], square[e], numbers)
            p = q
