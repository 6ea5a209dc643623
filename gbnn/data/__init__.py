"""Data: named data sets, files, and mini-batches."""

from gbnn.data.batches import Batches, batches
from gbnn.data.csr_folder import MappedRows, open_csr
from gbnn.data.csr_writer import save_csr, save_csr_batches
from gbnn.data.dataset import Dataset
from gbnn.data.datasets import DATASETS, digits, fashion_mnist, load, mnist
from gbnn.data.files import Records, read, read_records
from gbnn.data.hashing import HashingText, hash_batches, hash_features
from gbnn.data.idx import read_idx
from gbnn.data.layout import Layout
from gbnn.data.stream import Stream

__all__ = [
    "DATASETS",
    "Batches",
    "Dataset",
    "HashingText",
    "Layout",
    "MappedRows",
    "Records",
    "Stream",
    "batches",
    "digits",
    "fashion_mnist",
    "hash_batches",
    "hash_features",
    "load",
    "mnist",
    "open_csr",
    "read",
    "read_idx",
    "read_records",
    "save_csr",
    "save_csr_batches",
]
