"""gbnn: sparse neural networks as graph algebra; a layer's weights are the adjacency matrix of a graph."""

import os
from importlib.metadata import PackageNotFoundError, version

# Three thread pools take turns in one step: GraphBLAS's, numba's and BLAS's. OpenMP's default is that a pool
# spins after its work and so takes the cores from the next one; measured on two cores, a step of a small
# network is then 7 times slower on a quiet machine, more on a busy one (benchmarks/waiting.py). It is read
# when the OpenMP library loads, so it stands before everything; a value the user has set stays.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from gbnn import data, graph, layers, losses, models, semirings, storage, topology, training
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError, MissingError, NonFiniteError
from gbnn.training.checkpoint import load, save
from gbnn.weights import Change, Weights

try:
    __version__ = version("graphblas-nn")
except PackageNotFoundError:  # a checkout on the path that was never installed
    __version__ = "0"

__all__ = [
    "ArgumentError",
    "Change",
    "FileError",
    "GbnnError",
    "KindError",
    "MissingError",
    "NonFiniteError",
    "Weights",
    "data",
    "graph",
    "layers",
    "load",
    "losses",
    "models",
    "save",
    "semirings",
    "storage",
    "topology",
    "training",
]
