"""Data: named data sets, files, and mini-batches."""

from gbnn.data.batches import Batches, batches
from gbnn.data.dataset import Dataset
from gbnn.data.datasets import DATASETS, digits, fashion_mnist, load, mnist
from gbnn.data.files import Records, read, read_records
from gbnn.data.idx import read_idx

__all__ = [
    "DATASETS",
    "Batches",
    "Dataset",
    "Records",
    "batches",
    "digits",
    "fashion_mnist",
    "load",
    "mnist",
    "read",
    "read_idx",
    "read_records",
]
