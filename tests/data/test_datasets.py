from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import data
from gbnn.data import DATASETS, Dataset, datasets, digits, download, fashion_mnist, load, mnist
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError, MissingError

DEBIAN = download.FASHION_MNIST.installed
needs_debian = pytest.mark.skipif(
    DEBIAN is None or not DEBIAN.is_dir(), reason="Debian package dataset-fashion-mnist not installed"
)


def idx(array: np.ndarray) -> bytes:
    """The IDX bytes of an array, written independently of the reader."""
    sizes = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def small_set(train: int = 5, test: int = 3) -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    counts = (train, train, test, test)
    shapes = [
        (n, 28, 28) if "images" in stem else (n,) for stem, n in zip(download.STEMS, counts, strict=True)
    ]
    tops = [256 if len(shape) == 3 else 10 for shape in shapes]
    arrays = [rng.integers(0, top, shape) for top, shape in zip(tops, shapes, strict=True)]
    return {stem: idx(array) for stem, array in zip(download.STEMS, arrays, strict=True)}


def write_set(folder: Path, files: dict[str, bytes], packed: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for stem, content in files.items():
        name = f"{stem}.gz" if packed else stem
        (folder / name).write_bytes(gzip.compress(content) if packed else content)
    return folder


# -- The record ---------------------------------------------------------------------------------------------


def test_dataset_describes_itself():
    x, y = sp.csr_array(np.eye(4)), np.array([[0.0, 1.0]] * 4)
    labels = Dataset("tags", x, y, x, y, loss="binary_cross_entropy")
    assert labels.outputs == 2
    assert (
        labels.describe()
        == "tags: 4 training and 4 test rows, 4 features (0.25 of entries not zero), 2 labels"
    )
    numbers = Dataset("sums", x, y[:, 0], x, y[:, 0], loss="mse")
    assert numbers.outputs == 1
    assert "numbers to predict" in numbers.describe()
    unnamed = Dataset("plain", x, np.array([0, 1, 0, 1]), x, np.array([0, 1, 6, 1]))
    assert unnamed.outputs == 7  # also what only the test part has


def test_dataset_is_frozen():
    x, y = np.eye(2), np.array([0, 1])
    dataset = Dataset("a", x, y, x, y)
    with pytest.raises(AttributeError):
        dataset.name = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"x_train": np.eye(3)}, "y_train"),
        ({"x_train": np.zeros(2)}, "x_train"),
        ({"x_test": np.zeros((0, 2))}, "x_test"),
        ({"x_test": np.zeros((2, 3))}, "x_test"),
        ({"y_test": np.zeros((2, 2))}, "y_test"),
        ({"y_test": np.zeros(3)}, "y_test"),
        ({"classes": ("one",)}, "classes"),
        ({"classes": ("one", "two", "three")}, "classes"),
    ],
)
def test_dataset_parts_must_fit(change, where):
    x, y = np.eye(2), np.array([0, 1])
    if where == "classes" and len(change["classes"]) == 3:
        change = {**change, "y_train": np.eye(2), "y_test": np.eye(2), "loss": "binary_cross_entropy"}
    with pytest.raises(ArgumentError, match=rf"^{where}: "):
        replace(Dataset("a", x, y, x, y), **change)


# -- Digits -------------------------------------------------------------------------------------------------


def test_digits_are_split_evenly_and_repeatably():
    pytest.importorskip("sklearn")
    one, same, other = digits(), digits(seed=0), digits(seed=1)
    assert one.x_train.dtype == np.float32
    assert (one.x_train.min(), one.x_train.max()) == (0, 1)
    assert one.x_train.shape[0] + one.x_test.shape[0] == 1797
    np.testing.assert_array_equal(one.x_test, same.x_test)
    assert not np.array_equal(one.x_test, other.x_test)
    shares = np.bincount(one.y_test) / np.bincount(np.concatenate([one.y_train, one.y_test]))
    assert np.abs(shares - 0.2).max() < 0.01
    rows = {row.tobytes() for row in one.x_train}
    assert sum(row.tobytes() in rows for row in one.x_test) == 0


def test_digits_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingError, match=re.escape("pip install 'graphblas-nn[sklearn]'")):
        digits()


def test_importing_data_imports_nothing_heavy():
    code = """if True:
        import sys
        import gbnn.data
        print([name for name in ("sklearn", "urllib.request", "http.client") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- The sets of four files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("loader", [mnist, fashion_mnist])
def test_sets_from_a_folder(tmp_path, loader, packed):
    files = small_set()
    dataset = loader(write_set(tmp_path, files, packed))
    assert dataset.x_train.shape == (5, 784)
    assert dataset.x_train.dtype == np.float32
    assert dataset.y_train.dtype == np.int64
    pixels = np.frombuffer(files["t10k-images-idx3-ubyte"][16:], dtype=np.uint8).reshape(3, 784)
    np.testing.assert_allclose(dataset.x_test, pixels / 255, rtol=1e-6)
    np.testing.assert_array_equal(dataset.y_test, list(files["t10k-labels-idx1-ubyte"][8:]))
    assert dataset.image_shape == (28, 28)
    assert len(dataset.classes) == dataset.outputs == 10


def test_names_with_a_dot(tmp_path):
    files = {stem.replace("-idx", ".idx"): content for stem, content in small_set().items()}
    assert mnist(write_set(tmp_path, files)).features == 784


@pytest.mark.parametrize(
    ("stem", "content", "words"),
    [
        ("train-labels-idx1-ubyte", idx(np.zeros(4)), "5 labels, one an image"),
        ("t10k-labels-idx1-ubyte", idx(np.array([0, 10, 0])), "labels from 0 to 9, got 10"),
        ("t10k-images-idx3-ubyte", idx(np.zeros((3, 28, 27))), "images of 28 x 28"),
        ("train-images-idx3-ubyte", b"\0\0", "an IDX file"),
    ],
)
def test_sets_that_do_not_fit(tmp_path, stem, content, words):
    write_set(tmp_path, {**small_set(), stem: content})
    with pytest.raises(FileError, match=words) as caught:
        fashion_mnist(tmp_path)
    assert stem in caught.value.where


def test_a_named_folder_is_the_only_place(tmp_path):
    with pytest.raises(FileError, match="no such folder"):
        fashion_mnist(tmp_path / "absent")
    files = small_set()
    del files["t10k-labels-idx1-ubyte"]
    with pytest.raises(FileError, match="a folder without t10k-labels-idx1-ubyte"):
        fashion_mnist(write_set(tmp_path, files))


@needs_debian
def test_fashion_mnist_from_debian(tmp_path):
    dataset = fashion_mnist(cache=tmp_path, download=False)
    assert dataset.x_train.shape == (60_000, 784)
    assert dataset.x_test.shape == (10_000, 784)
    assert (dataset.x_train.min(), dataset.x_train.max()) == (0, 1)
    np.testing.assert_array_equal(np.bincount(dataset.y_train), [6000] * 10)
    np.testing.assert_array_equal(np.bincount(dataset.y_test), [1000] * 10)
    assert dataset.classes[dataset.y_train[0]] == "Ankle boot"
    # Mean brightness of the published training images.
    assert dataset.x_train.mean(dtype=np.float64) == pytest.approx(0.2860, abs=5e-5)
    assert list(tmp_path.iterdir()) == []


@needs_debian
def test_published_checksums_are_of_the_same_images():
    # Debian's files differ from the published ones in the gzip header only, which had name and time.
    for stem, digest in download.FASHION_MNIST.sha256.items():
        time = 0x59A7E9DE if stem.startswith("train") else 0x59A7E9F3
        header = b"\x1f\x8b\x08\x08" + time.to_bytes(4, "little") + b"\0\x03" + stem.encode() + b"\0"
        packed = (DEBIAN / f"{stem}.gz").read_bytes()
        assert hashlib.sha256(header + packed[10:]).hexdigest() == digest


# -- Downloads ----------------------------------------------------------------------------------------------


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def local(monkeypatch, files: dict[str, bytes], mirrors: list[str]) -> None:
    """Make MNIST a small set that is served at `mirrors`."""
    sums = {stem: sha256(gzip.compress(content, mtime=0)) for stem, content in files.items()}
    source = replace(download.MNIST, mirrors=tuple(mirrors), sha256=sums)
    monkeypatch.setattr(datasets, "MNIST", source)


def test_mnist_is_downloaded_once_and_damage_is_repaired(tmp_path, server, monkeypatch):
    folder, url = server
    files = small_set()
    for stem, content in files.items():
        (folder / f"{stem}.gz").write_bytes(gzip.compress(content, mtime=0))
    local(monkeypatch, files, [f"{url}not-here/", url])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = load("mnist")
    kept = tmp_path / "cache" / "gbnn" / "mnist"
    assert sorted(path.name for path in kept.iterdir()) == sorted(f"{stem}.gz" for stem in files)
    local(monkeypatch, files, [])
    np.testing.assert_array_equal(mnist().x_train, first.x_train)
    damaged = kept / "t10k-labels-idx1-ubyte.gz"
    damaged.write_bytes(damaged.read_bytes()[:-3])
    with pytest.raises(FileError, match="mnist: "):
        mnist(download=False)
    local(monkeypatch, files, [url])
    np.testing.assert_array_equal(mnist().y_test, first.y_test)


def test_when_none_can_be_had_the_ways_are_named(tmp_path, monkeypatch):
    source = replace(download.FASHION_MNIST, mirrors=("http://127.0.0.1:9/",), installed=tmp_path / "none")
    monkeypatch.setattr(datasets, "FASHION_MNIST", source)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(FileError) as caught:
        fashion_mnist(cache=tmp_path)
    for words in ("folder=", "dataset-fashion-mnist", "network", str(tmp_path), "127.0.0.1:9", "refused"):
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# -- By name or file ----------------------------------------------------------------------------------------


def table(path: Path, rows: int = 20) -> Path:
    path.write_text("".join(f"{i},{i * i},{'abcd'[i % 4]}\n" for i in range(rows)))
    return path


def test_load_by_name(tmp_path):
    assert list(DATASETS) == ["digits", "fashion-mnist", "mnist"]
    folder = write_set(tmp_path, small_set())
    assert load("mnist", folder=folder).name == "mnist"
    assert load("fashion-mnist", folder=folder).classes[-1] == "Ankle boot"
    pytest.importorskip("sklearn")
    np.testing.assert_array_equal(load("digits", seed=3).x_test, digits(3).x_test)


def test_load_splits_a_file_by_class_and_seed(tmp_path):
    path = table(tmp_path / "letters.csv", 40)
    dataset = load(path)
    assert dataset.name == "letters"
    assert dataset.classes == ("a", "b", "c", "d")
    np.testing.assert_array_equal(np.bincount(dataset.y_test), [2] * 4)
    both = np.concatenate([dataset.x_train, dataset.x_test])[:, 0]
    assert sorted(both.tolist()) == list(range(40))
    np.testing.assert_array_equal(both.astype(int) % 4, np.concatenate([dataset.y_train, dataset.y_test]))
    np.testing.assert_array_equal(load(path).x_test, dataset.x_test)
    assert not np.array_equal(load(path, seed=1).x_test, dataset.x_test)
    assert load(path, test_share=0.5).x_test.shape[0] == 20


@settings(deadline=None)
@given(st.integers(2, 60), st.floats(0.01, 0.99), st.booleans(), st.integers(0, 5))
def test_split_is_a_partition_of_the_right_size(rows, share, classes, seed):
    y = np.random.default_rng(seed).integers(0, 4, rows)
    train, test = datasets._split(y, share, np.random.default_rng(seed), classes=classes)
    assert sorted([*train, *test]) == list(range(rows))
    assert test.size == min(max(round(rows * share), 1), rows - 1)


def test_load_keeps_the_test_part_of_a_file(tmp_path):
    x = np.arange(12.0).reshape(6, 2)
    np.savez(tmp_path / "a.npz", x=x[:4], y=[0, 5, 0, 5], x_test=x[4:], y_test=[5, 7])
    dataset = load(str(tmp_path / "a.npz"))
    np.testing.assert_array_equal(dataset.x_test, x[4:])
    assert dataset.classes == ("0", "5", "7")
    assert (dataset.y_train.tolist(), dataset.y_test.tolist()) == ([0, 1, 0, 1], [1, 2])


def test_load_integers_as_numbers(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("1,100\n2,200\n3,300\n")
    assert load(path).loss == "cross_entropy"
    assert load(path, classes=()).loss == "mse"


def test_load_wrong(tmp_path):
    names = "one of digits, fashion-mnist, mnist, or a file that exists"
    for unknown in ("minst", str(tmp_path / "absent.csv"), "", "a" * 5000, "a\0b", "x.npz,y.npz"):
        with pytest.raises(ArgumentError, match=names):
            load(unknown)
    with pytest.raises(KindError, match="data"):
        load(3)
    with pytest.raises(FileError, match="a folder"):
        load(tmp_path)
    path = table(tmp_path / "a.csv")
    for option, value in (("folder", tmp_path), ("seed", "x"), ("test_share", 0.0), ("test_share", 1.0)):
        with pytest.raises(GbnnError, match=rf"^{option}: "):
            load(path, **{option: value})
    for option, value in (("target", "y"), ("classes", ["a"])):
        with pytest.raises(ArgumentError, match=rf"^{option}: .* mnist"):
            load("mnist", **{option: value})
    with pytest.raises(ArgumentError, match=r"^folder: .* digits"):
        load("digits", folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [("1,2,a\n", "two classes"), ("1,2,a\n2,3,a\n", "two classes"), ("1,2,0.5\n", "at least two rows")],
)
def test_load_too_little_data(tmp_path, content, words):
    path = tmp_path / "little.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=words):
        load(path)


def test_load_without_targets(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(FileError, match="targets beside the samples"):
        load(tmp_path / "a.npy")


def test_public_names_exist():
    assert all(hasattr(data, name) for name in data.__all__)


def test_multi_label_data_trains_a_loss(tmp_path):
    from gbnn import losses

    path = tmp_path / "tags.svm"
    path.write_text("3,8 1:1\n8 2:1\n3 1:0.5\n3,8 2:2\n")
    dataset = load(path)
    outputs = np.zeros((dataset.y_train.shape[0], dataset.outputs), dtype=np.float32, order="F")
    value, _ = losses.BinaryCrossEntropy()(outputs, dataset.y_train)
    assert value == pytest.approx(np.log(2))
