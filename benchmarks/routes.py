"""Every route of every semiring, and the adjoint, timed.

python benchmarks/routes.py [--width 4096] [--density 0.01] [--batch 128]
python benchmarks/routes.py --bound [--threads 1]    where plus_times's own kernel is faster than GraphBLAS
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import alternate

from gbnn import semirings, storage
from gbnn.layers import Linear
from gbnn.semirings import Semiring
from gbnn.semirings.routes import is_small


def _both_gradients(pullback: Callable[..., Any], dy: Any) -> object:
    return np.asarray(pullback(dy)[1]["weights"])


SHAPES = [
    (300, 100),
    (784, 300),
    (784, 1568),
    (1000, 1000),
    (1568, 1568),
    (4000, 100),
    (100, 4000),
    (4000, 4000),
]


def _bound() -> None:
    """Print microseconds of plus_times by GraphBLAS and by its kernel, on both sides of `is_small`."""
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for nnz in (300, 2_400, 8_000, 12_000, 24_000, 50_000):
            if nnz > 0.9 * shape[0] * shape[1]:
                continue
            weights = Linear.random(*shape, nnz=nnz, bias=False, seed=0).weights
            for batch in (1, 8, 16, 32, 100, 256):
                x = np.asfortranarray(rng.standard_normal((batch, shape[0]), dtype=np.float32))
                names = ("graphblas", "small")
                times = alternate(
                    {n: partial(semirings.plus_times.product, x, weights, route=n) for n in names}, 41
                )
                taken = "kernel" if is_small(x, weights) else "GraphBLAS"
                called, looped = (1e6 * times[n] for n in names)
                size = f"{shape[0]:5d} x {shape[1]:<5d} {nnz:6d} edges, batch {batch:3d}"
                both = f"GraphBLAS {called:5.0f}, kernel {looped:5.0f} ({called / looped:.1f} times)"
                print(f"{size}: {both}, taken: {taken}", flush=True)


def main() -> None:
    """Print milliseconds of each route, and its ratio to the one gbnn takes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--density", type=float, default=0.01)
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--bound", action="store_true")
    options.add_argument("--threads", type=int, default=storage.threads())
    given = options.parse_args()
    storage.set_threads(given.threads)
    if given.bound:
        _bound()
        return
    rng = np.random.default_rng(0)
    nnz = round(given.density * given.width**2)
    x = np.asfortranarray(rng.random((given.batch, given.width), dtype=np.float32))
    print(f"{given.width} x {given.width}, {nnz:,} edges, batch {given.batch}, float32; milliseconds (ratio)")
    for name in semirings.__all__:
        semiring = getattr(semirings, name)
        if not isinstance(semiring, Semiring):
            continue
        weights = Linear.random(
            given.width, given.width, nnz=nnz, semiring=semiring, bias=False, seed=0
        ).weights
        sides: dict[str, Callable[[], object]] = {
            route.name: partial(semiring.product, x, weights, route=route.name) for route in semiring.routes
        }
        if semiring.partials is not None:
            y, pullback = semiring.product(x, weights)
            dy = np.asfortranarray(rng.standard_normal(y.shape, dtype=np.float32))
            sides["adjoint"] = partial(_both_gradients, pullback, dy)
        times = alternate(sides, 7)
        taken = times[next(r.name for r in semiring.routes if r.applies(x, weights))]
        print(f"{name:11s}", "  ".join(f"{k} {1e3 * t:.2f} ({t / taken:.1f})" for k, t in times.items()))


if __name__ == "__main__":
    main()
