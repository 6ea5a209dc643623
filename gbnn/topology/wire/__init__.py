"""Initial graphs: makers (rng, shape, nnz) -> Edges with exactly `nnz` edges, and graphs made elsewhere."""

from gbnn.topology.wire.attachment import scale_free
from gbnn.topology.wire.correlated import correlated
from gbnn.topology.wire.given import from_networkx, from_scipy
from gbnn.topology.wire.lattice import small_world
from gbnn.topology.wire.maker import Wiring, fixed
from gbnn.topology.wire.matching import expander, regular
from gbnn.topology.wire.mixed_radix import butterfly, radix_net
from gbnn.topology.wire.tiles import blocks, n_of_m
from gbnn.topology.wire.uniform import constant_fan_in, constant_fan_out, random

__all__ = [
    "Wiring",
    "blocks",
    "butterfly",
    "constant_fan_in",
    "constant_fan_out",
    "correlated",
    "expander",
    "fixed",
    "from_networkx",
    "from_scipy",
    "n_of_m",
    "radix_net",
    "random",
    "regular",
    "scale_free",
    "small_world",
]
