"""Hashing: records and text to sparse rows of up to 2**60 columns, without a vocabulary."""

from gbnn.data.hashing.features import hash_batches, hash_features
from gbnn.data.hashing.text import HashingText
from gbnn.data.hashing.xxh64 import xxh64

__all__ = ["HashingText", "hash_batches", "hash_features", "xxh64"]
