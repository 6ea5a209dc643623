"""Published methods as combinations of the rules, a few lines each."""

from gbnn.topology.recipes.by_gradient import gse, rigl, snfs, sparse_momentum, srigl
from gbnn.topology.recipes.by_paths import cht, chts, chtss
from gbnn.topology.recipes.classic import deep_r, dsr, itop, mest, set_, static
from gbnn.topology.recipes.demand import grow_on_demand
from gbnn.topology.recipes.density import gmp, granet, top_kast

__all__ = [
    "cht",
    "chts",
    "chtss",
    "deep_r",
    "dsr",
    "gmp",
    "granet",
    "grow_on_demand",
    "gse",
    "itop",
    "mest",
    "rigl",
    "set_",
    "snfs",
    "sparse_momentum",
    "srigl",
    "static",
    "top_kast",
]
