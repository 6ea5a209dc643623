"""Where the files of a data set are: a folder, an installed package, a cache, or the network."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gbnn.errors import ArgumentError, FileError

__all__ = ["FASHION_MNIST", "MNIST", "STEMS", "Source", "cache_folder", "fetch", "locate"]

STEMS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
"""Names of the four files of MNIST and its kin; each plain or with ".gz" behind it."""

CHUNK = 2**16
LIMIT = 2**28  # bytes; no file here is near it: an endless answer must not fill the disk


@dataclass(frozen=True)
class Source:
    """Where a data set of four IDX files can be had.

    Attributes
    ----------
    name : str
    mirrors : tuple of str
        Addresses of folders, tried in turn.
    sha256 : dict
        Stem of a file -> SHA-256 of its ``.gz`` as published.
    package : str
        Debian package that installs the files, or empty.
    installed : Path, optional
        The folder where that package puts them.
    """

    name: str
    mirrors: tuple[str, ...]
    sha256: dict[str, str]
    package: str = ""
    installed: Path | None = None


# The MD5 sums that the authors publish were checked on the same bytes as these.
FASHION_MNIST = Source(
    name="fashion-mnist",
    mirrors=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    sha256={
        "train-images-idx3-ubyte": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
    package="dataset-fashion-mnist",
    installed=Path("/usr/share/datasets/fashion-mnist"),
)

MNIST = Source(
    name="mnist",
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    sha256={
        "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)


def cache_folder() -> Path:
    """Return the folder for downloads: ``gbnn`` in XDG_CACHE_HOME, else in ``~/.cache``.

    Examples
    --------
    >>> from gbnn.data.download import cache_folder
    >>> cache_folder().name
    'gbnn'
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative path.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "gbnn"


def fetch(url: str, path: str | Path, sha256: str, *, timeout: float = 30.0) -> None:
    """Download a file; `path` appears whole and with the right checksum, or not at all.

    Parameters
    ----------
    url : str
        http or https.
    path : str or Path
        Where it goes; its folder is made if need be.
    sha256 : str
        Checksum it must have, in hexadecimal.
    timeout : float
        Seconds without an answer after which it gives up.

    Raises
    ------
    FileError
        If there is no connection, no such file, another checksum, or `path` cannot be written. Nothing is
        left behind then.
    ArgumentError
        If `url` is neither http nor https.
    """
    # On use: these take longer to import than everything else in this package.
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("http://", "https://")):
        raise ArgumentError("url", "http:// or https://", url)
    target = Path(path)
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".download-", delete=False) as out:
            temporary = Path(out.name)
            request = urllib.request.Request(url, headers={"User-Agent": "gbnn"})  # noqa: S310 (checked above)
            digest = hashlib.sha256()
            size = 0
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
                while chunk := answer.read(CHUNK):
                    size += len(chunk)
                    if size > LIMIT:
                        raise FileError(url, f"at most {LIMIT} bytes", "more")
                    digest.update(chunk)
                    out.write(chunk)
        if digest.hexdigest() != sha256:
            raise FileError(url, f"SHA-256 {sha256}", f"{digest.hexdigest()} ({size} bytes)")
        os.replace(temporary, target)
        temporary = None
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise FileError(url, "the file", f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise FileError(url, "an answer", error.reason) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        # ValueError also is what a malformed address or answer gives; FileError is one and is right already.
        if isinstance(error, FileError):
            raise
        raise FileError(url, f"a download to {target}", error) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def locate(
    source: Source, folder: str | Path | None, cache: str | Path | None, *, download: bool = True
) -> list[Path]:
    """Return the paths of the four files of `source`, in the order of `STEMS`.

    Parameters
    ----------
    source : Source
    folder : str or Path, optional
        Look here and nowhere else.
    cache : str or Path, optional
        Where downloads are kept; by default in `cache_folder()`.
    download : bool
        Whether the network may be used for what is not in the cache.

    Raises
    ------
    FileError
        If they cannot be had, naming the ways to get them.
    """
    if folder is not None:
        found = [_present(Path(folder), stem) for stem in STEMS]
        lacking = ", ".join(stem for stem, path in zip(STEMS, found, strict=True) if path is None)
        if lacking:
            got = f"a folder without {lacking}" if Path(folder).is_dir() else "no such folder"
            raise FileError(str(folder), f"the four IDX files of {source.name}, plain or .gz", got)
        return [path for path in found if path is not None]
    if source.installed is not None:
        found = [_present(source.installed, stem) for stem in STEMS]
        if None not in found:
            return [path for path in found if path is not None]
    place = (cache_folder() if cache is None else Path(cache)) / source.name
    return [_cached(source, place, stem, download) for stem in STEMS]


def _present(folder: Path, stem: str) -> Path | None:
    # Some copies have a dot where the authors' have a dash: train-images.idx3-ubyte.
    names = [stem, f"{stem}.gz", stem.replace("-idx", ".idx"), stem.replace("-idx", ".idx") + ".gz"]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _cached(source: Source, place: Path, stem: str, download: bool) -> Path:
    path = place / f"{stem}.gz"
    if path.is_file() and _sha256(path) == source.sha256[stem]:
        return path
    reason: object = "not in the cache, and download=False"
    for mirror in source.mirrors if download else ():
        try:
            fetch(f"{mirror}{stem}.gz", path, source.sha256[stem])
        except FileError as error:
            reason = error
        else:
            return path
    package = f"the Debian package {source.package}; or " if source.package else ""
    ways = f"its IDX files in a folder you name (folder=...); or {package}a network to download to {place}"
    raise FileError(source.name, ways, reason)


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""  # unreadable is as good as absent: it is downloaded again, or named in the error
