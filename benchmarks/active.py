"""Products with sparse rows: the compiled loops over active edges against the best GraphBLAS calls.

    python benchmarks/active.py [--edges 1000000] [--batch 128] [--active 100]

All in one process, taking turns. Forward: `plus_times(X @ W)`, both sparse and by row. Backward: the
gradient of the edges at the winners of each row, in GraphBLAS a product under the mask of W,
`dW(W.S) << X.T @ dY`.
"""

from __future__ import annotations

import argparse
from typing import Any

import graphblas as gb
import numpy as np
from graphblas import semiring
from timing import alternate
from width import WIDTHS, batch_of

from gbnn.layers import KWinners, Linear
from gbnn.rows import SparseRows


def sides(layer: Linear, x: SparseRows, winners: int) -> dict[str, Any]:
    """Return what is measured, by name."""
    weights = layer.weights
    w = weights.to_graphblas()
    x_gb = x.to_graphblas()
    y, pullback = layer.forward(x)
    won, back = KWinners(winners).forward(y)
    assert isinstance(won, SparseRows)
    dy = won.with_values(np.ones_like(won.values))
    to_y, _ = back(dy)
    dy_gb, x_t = won.to_graphblas(), x.to_graphblas().T.new()

    def masked() -> None:
        out = gb.Matrix(dy_gb.dtype, *weights.shape)
        out(w.S) << semiring.plus_times(x_t @ dy_gb)

    return {
        "forward, loops": lambda: layer.forward(x),
        "forward, GraphBLAS": lambda: semiring.plus_times(x_gb @ w).new(),
        "backward, loops": lambda: pullback(to_y, inputs=False),
        "backward, GraphBLAS": masked,
    }


def main() -> None:
    """Print a row for each width: milliseconds, and GraphBLAS over the loops."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--edges", type=int, default=10**6)
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--active", type=int, default=100)
    options.add_argument("--winners", type=int, default=100)
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    print(f"{given.edges:,} edges, {given.active} active inputs, batch {given.batch}, float32")
    names = ["forward", "GraphBLAS", "ratio", "backward", "GraphBLAS", "ratio"]
    print(f"{'width':>17s} " + " ".join(name.rjust(10) for name in names))
    for width in WIDTHS:
        layer = Linear.random(width, width, nnz=given.edges, bias=False, seed=1)
        x = batch_of(layer, given.batch, given.active, np.random.default_rng(0))
        times = [1e3 * t for t in alternate(sides(layer, x, given.winners), given.rounds).values()]
        cells = "{:10.2f} {:10.2f} {:10.1f} {:10.2f} {:10.2f} {:10.1f}".format(
            *times[:2], times[1] / times[0], *times[2:], times[3] / times[2]
        )
        print(f"{width:17,} {cells}", flush=True)


if __name__ == "__main__":
    main()
