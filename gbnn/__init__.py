"""gbnn: sparse neural networks as graph algebra. A layer's weight matrix is the adjacency matrix of a graph."""

from importlib.metadata import PackageNotFoundError, version

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
