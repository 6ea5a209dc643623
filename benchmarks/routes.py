"""Every route of every semiring, and the adjoint, timed.

python benchmarks/routes.py [--width 4096] [--density 0.01] [--batch 128]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import alternate

from gbnn import semirings
from gbnn.layers import Linear
from gbnn.semirings import Semiring


def _both_gradients(pullback: Callable[..., Any], dy: Any) -> object:
    return np.asarray(pullback(dy)[1]["weights"])


def main() -> None:
    """Print milliseconds of each route, and its ratio to the one gbnn takes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--density", type=float, default=0.01)
    options.add_argument("--batch", type=int, default=128)
    given = options.parse_args()
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
        taken = times[semiring.routes[0].name]
        print(f"{name:11s}", "  ".join(f"{k} {1e3 * t:.2f} ({t / taken:.1f})" for k, t in times.items()))


if __name__ == "__main__":
    main()
