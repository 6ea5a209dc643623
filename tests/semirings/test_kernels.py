"""The compiled kernels as such; what they compute is tested with the semirings."""

from __future__ import annotations

import subprocess
import sys

NOWHERE = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import numpy as np
from gbnn import layers
from gbnn.semirings import kernels
y, pullback = layers.Linear.from_dense(np.ones((2, 3))).forward(np.ones((4, 2)))
assert np.asarray(pullback(np.ones((4, 3)))[1]["weights"]).tolist() == [4.0] * 6
"""


def test_kernels_compile_where_nothing_can_be_kept_on_disk() -> None:
    run = subprocess.run([sys.executable, "-c", NOWHERE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
