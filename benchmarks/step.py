"""One training step (forward, backward, Adam) of a sparse layer, against a masked dense layer in torch.

    python benchmarks/step.py [--width 4096] [--density 0.01] [--batch 128]

Both sides in one process, alternating. The torch side is what sparse-training code commonly does: a dense
layer whose weights are multiplied by a 0/1 mask, dense gradients, Adam over all places.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any

import numpy as np
from timing import alternate

from gbnn import training
from gbnn.layers import Linear
from gbnn.training.loop import values


def main() -> None:
    """Print the median of each side in milliseconds, and the ratio."""
    torch: Any = importlib.import_module("torch")  # typed or not, installed or not: the checks are the same
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--density", type=float, default=0.01)
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    n, batch = given.width, given.batch
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, n), dtype=np.float32)
    dy = rng.standard_normal((batch, n), dtype=np.float32)

    layer = Linear.random(n, n, density=given.density, bias=False, seed=0)
    optimizer = training.adam(1e-3)
    slots = optimizer.start(values(layer))
    x_own, dy_own = np.asfortranarray(x), np.asfortranarray(dy)

    def ours() -> None:
        _, pullback = layer.forward(x_own, training=True)
        _, gradients = pullback(dy_own)
        layer.weights.add(optimizer.update(gradients, slots, values(layer), 0)["weights"])

    mask = torch.from_numpy(layer.weights.to_dense() != 0).float()
    weight = torch.nn.Parameter(torch.from_numpy(layer.weights.to_dense()))
    adam = torch.optim.Adam([weight], lr=1e-3)
    x_torch, dy_torch = torch.from_numpy(x).requires_grad_(), torch.from_numpy(dy)

    def theirs() -> None:
        adam.zero_grad(set_to_none=True)
        x_torch.grad = None
        (x_torch @ (weight * mask)).backward(dy_torch)
        adam.step()

    y, _ = layer.forward(x_own)
    np.testing.assert_allclose(y, (x_torch @ (weight * mask)).detach().numpy(), rtol=1e-3, atol=1e-3)
    times = alternate({"gbnn": ours, "torch masked dense": theirs}, given.rounds)
    print(f"{n} x {n}, density {given.density}, batch {batch}, float32, {layer.nnz:,} edges")
    for name, seconds in times.items():
        print(f"{name:20s} {1e3 * seconds:9.2f} ms  ({seconds / times['gbnn']:.1f} times gbnn)")


if __name__ == "__main__":
    main()
