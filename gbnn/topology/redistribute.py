"""How much each layer grows: functions (sites, dropped, total) -> counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gbnn.topology.site import Site

Array = np.ndarray[Any, Any]
Allocate = Callable[[Sequence[Site], Sequence[Array], int], list[int]]


def same(sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Let every layer grow as many edges as it dropped."""
    return [gone.size for gone in dropped]
