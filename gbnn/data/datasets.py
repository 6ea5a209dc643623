"""Data sets by name, or from a file: digits, Fashion-MNIST, MNIST."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gbnn.data.dataset import Dataset
from gbnn.data.download import FASHION_MNIST, MNIST, Source, locate
from gbnn.data.files import read_records
from gbnn.data.idx import read_idx
from gbnn.errors import ArgumentError, FileError, KindError, MissingError, check_float, generator

__all__ = ["DATASETS", "digits", "fashion_mnist", "load", "mnist"]

Array = np.ndarray[Any, Any]

DIGIT_NAMES = tuple("0123456789")
FASHION_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def digits(seed: int | np.random.Generator = 0) -> Dataset:
    """Return the 1,797 handwritten digits that come inside scikit-learn, split 80/20 by class.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Which rows are the test part.

    Returns
    -------
    Dataset
        8 x 8 pixels scaled to [0, 1], float32; ten classes.

    Raises
    ------
    MissingError
        Without scikit-learn.

    Notes
    -----
    E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.

    Examples
    --------
    >>> from gbnn.data import digits
    >>> digits()
    Dataset(digits: 1,438 training and 359 test rows, 64 features (8 x 8 pixels), 10 classes (0, 1, 2, ...))
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        wanted = "scikit-learn: pip install 'graphblas-nn[sklearn]'"
        raise MissingError("digits", wanted, error) from None
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    train, test = _split(y, 0.2, generator("seed", seed), classes=True)
    return Dataset("digits", x[train], y[train], x[test], y[test], DIGIT_NAMES, (8, 8))


def fashion_mnist(
    folder: str | Path | None = None, *, cache: str | Path | None = None, download: bool = True
) -> Dataset:
    """Return Fashion-MNIST: 60,000 + 10,000 pictures of clothes, 28 x 28, ten classes.

    Parameters
    ----------
    folder : str or Path, optional
        Where the four IDX files are, plain or gzip-compressed: ``train-images-idx3-ubyte``,
        ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte``, ``t10k-labels-idx1-ubyte``. By default the
        folder of the Debian package ``dataset-fashion-mnist``, else the cache, else the network.
    cache : str or Path, optional
        Where downloads are kept; by default ``gbnn`` in XDG_CACHE_HOME or ``~/.cache``.
    download : bool
        Whether the network may be used.

    Returns
    -------
    Dataset
        784 pixels scaled to [0, 1], float32; class numbers int64.

    Raises
    ------
    FileError
        If the files cannot be had (naming the ways to get them), are damaged, or do not fit each other.

    Notes
    -----
    H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
    Algorithms, 2017, arXiv:1708.07747; MIT licence.

    Examples
    --------
    From four files of the same layout, here empty pictures:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data import fashion_mnist
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, n in (("train", 3), ("t10k", 2)):
    ...         images = bytes([0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(784 * n)
    ...         _ = Path(folder, f"{part}-images-idx3-ubyte").write_bytes(images)
    ...         labels = bytes([0, 0, 8, 1, 0, 0, 0, n]) + bytes(n)
    ...         _ = Path(folder, f"{part}-labels-idx1-ubyte").write_bytes(labels)
    ...     dataset = fashion_mnist(folder)
    >>> dataset.x_train.shape, dataset.y_test, dataset.classes[0]
    ((3, 784), array([0, 0]), 'T-shirt/top')
    """
    return _images(FASHION_MNIST, FASHION_NAMES, folder, cache, download)


def mnist(
    folder: str | Path | None = None, *, cache: str | Path | None = None, download: bool = True
) -> Dataset:
    """Return MNIST: 60,000 + 10,000 handwritten digits, 28 x 28.

    Parameters, errors and layout are those of `fashion_mnist`; no Debian package has these files.

    Notes
    -----
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner: Gradient-Based Learning Applied to Document Recognition,
    Proceedings of the IEEE 86(11), 1998.

    Examples
    --------
    >>> import tempfile
    >>> from gbnn.data import mnist
    >>> from gbnn.errors import FileError
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         mnist(cache=folder, download=False)
    ...     except FileError as error:
    ...         print(error)
    mnist: expected its IDX files in a folder you name (folder=...); or a network to download to ..., got ...
    """
    return _images(MNIST, DIGIT_NAMES, folder, cache, download)


DATASETS: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "fashion-mnist": fashion_mnist,
    "mnist": mnist,
}
"""The data sets that `load` and the command line know, by name."""


def load(
    source: str | Path,
    *,
    folder: str | Path | None = None,
    target: str | int | None = None,
    classes: Sequence[str] | None = None,
    seed: int | np.random.Generator = 0,
    test_share: float = 0.2,
) -> Dataset:
    r"""Return a data set by its name, or from a file.

    Parameters
    ----------
    source : str or Path
        A name in `DATASETS` (a file of the same name is meant by ``./name``), or a file or pair of files as
        `gbnn.data.read` takes them.
    folder : str or Path, optional
        Where the files of a named data set are.
    target, classes : optional
        For files; see `gbnn.data.read`.
    seed : int or numpy.random.Generator
        Chooses the test rows of files that have no test part, and of digits.
    test_share : float
        How much of a file without a test part to set aside, at most 0.99; evenly over classes.

    Returns
    -------
    Dataset

    Raises
    ------
    ArgumentError
        If there is neither such a name nor such a file, or an argument does not apply.
    FileError
        If the file is malformed, has no targets, one class only, or too few rows to split.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gbnn.data import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sums.csv")
    ...     _ = path.write_text("".join(f"{i},{i + 1},{2 * i + 1}.0\n" for i in range(10)))
    ...     load(path)
    Dataset(sums: 8 training and 2 test rows, 2 features, 1 numbers to predict)
    """
    if not isinstance(source, (str, Path)):
        raise KindError("data", "a name or a path", type(source).__name__)
    if source in DATASETS:
        return _load_named(str(source), folder, target, classes, seed)
    first = str(source).split(",")[0].strip()
    if not (os.path.exists(source) or os.path.exists(first)):
        wanted = f"one of {', '.join(DATASETS)}, or a file that exists"
        raise ArgumentError("data", wanted, repr(str(source)))
    if folder is not None:
        raise ArgumentError("folder", f"none with a file ({source})", repr(str(folder)))
    share = check_float("test_share", test_share, 0.0, 0.99, open_low=True)
    rng = generator("seed", seed)
    records = read_records(source, target=target, classes=classes)
    if records.y is None:
        raise FileError(str(source), "targets beside the samples", "samples alone")
    if records.loss == "cross_entropy" and len(records.classes) < 2:
        raise FileError(str(source), "at least two classes", f"{list(records.classes)} alone")
    parts = (records.x, records.y, records.x_test, records.y_test)
    if records.x_test is None:
        if records.x.shape[0] < 2:
            raise FileError(str(source), "at least two rows, to set one aside for testing", "one")
        train, test = _split(records.y, share, rng, classes=records.loss == "cross_entropy")
        parts = (records.x[train], records.y[train], records.x[test], records.y[test])
    return Dataset(
        Path(first).stem, *parts, records.classes, records.image_shape, records.loss, records.zero_based
    )


def _load_named(name: str, folder: Any, target: Any, classes: Any, seed: Any) -> Dataset:
    loader = DATASETS[name]
    takes = inspect.signature(loader).parameters
    for argument, value in (("folder", folder), ("target", target), ("classes", classes)):
        if value is not None and argument not in takes:
            raise ArgumentError(argument, f"none with the data set {name}", repr(value))
    given = {"folder": folder, "seed": seed}
    return loader(**{key: value for key, value in given.items() if key in takes})


def _images(source: Source, names: tuple[str, ...], folder: Any, cache: Any, download: bool) -> Dataset:
    paths = locate(source, folder, cache, download=download)
    arrays: list[Array] = []
    for images_path, labels_path in (paths[:2], paths[2:]):
        images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
        if images.shape[1:] != (28, 28):
            raise FileError(str(images_path), "images of 28 x 28", f"shape {images.shape}")
        if labels.size != images.shape[0]:
            wanted = f"{images.shape[0]} labels, one an image of {images_path}"
            raise FileError(str(labels_path), wanted, labels.size)
        if int(labels.max()) >= len(names):
            raise FileError(str(labels_path), f"labels from 0 to {len(names) - 1}", int(labels.max()))
        # Divided as float32 straight away: a float64 copy of the images would be 376 MB.
        pixels = np.divide(images.reshape(-1, 784), np.float32(255), dtype=np.float32)
        arrays += [pixels, labels.astype(np.int64)]
    x_train, y_train, x_test, y_test = arrays
    return Dataset(source.name, x_train, y_train, x_test, y_test, names, (28, 28))


def _split(y: Any, share: float, rng: np.random.Generator, *, classes: bool) -> tuple[Array, Array]:
    """Return the rows to train with and those to test with, each ascending; evenly over the classes."""
    rows = y.shape[0]
    order = rng.permutation(rows)
    if classes:
        # By class and at random within it: every k-th of these rows is a fair share of each class.
        order = order[np.argsort(y[order], kind="stable")]
    count = min(max(round(rows * share), 1), rows - 1)
    picked = ((np.arange(count) + 0.5) * rows / count).astype(np.int64)
    held = np.zeros(rows, dtype=bool)
    held[order[picked]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)
