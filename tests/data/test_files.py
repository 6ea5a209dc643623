from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gbnn.data import load, read, read_records
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not (SHARED / "ml_bibtex.npz").is_file(), reason="no shared data here")


def csr(rows: int = 6, columns: int = 5, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, columns), dtype=np.float32) * (rng.random((rows, columns)) < 0.4)
    return sp.csr_array(dense)


def same_sparse(a: sp.csr_array, b: sp.csr_array) -> None:
    assert a.format == "csr"
    assert a.shape == b.shape
    np.testing.assert_array_equal(a.toarray(), b.toarray())


def parts(**matrices: sp.csr_array) -> dict[str, np.ndarray]:
    arrays = {}
    for name, m in matrices.items():
        arrays |= {f"{name}_data": m.data, f"{name}_indices": m.indices, f"{name}_indptr": m.indptr}
        arrays[f"{name}_shape"] = np.array(m.shape)
    return arrays


# -- NumPy and SciPy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("names", [("x", "y"), ("X", "y"), ("X", "Y"), ("x_train", "y_train")])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float32, np.float64, ">f4"])
def test_npz_round_trip(tmp_path, save, names, dtype):
    x = (np.arange(12).reshape(4, 3) % 2).astype(dtype)
    save(tmp_path / "a.npz", **dict(zip(names, (x, [3, 1, 3, 2]), strict=True)), other=np.zeros(1))
    back, y = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(back, x)
    assert back.dtype == x.dtype.newbyteorder("=")
    assert y.tolist() == [2, 0, 2, 1]


def test_npz_of_csr_parts_and_named_targets(tmp_path):
    x, tags, other = csr(), csr(6, 3, seed=1) > 0, csr(6, 2, seed=2) > 0
    np.savez(tmp_path / "a.npz", **parts(X=x, tags=tags, other=other), y=np.arange(6.0))
    back, y = read(tmp_path / "a.npz")
    same_sparse(back, x)
    np.testing.assert_array_equal(y, np.arange(6.0))
    records = read_records(tmp_path / "a.npz", target="tags")
    same_sparse(records.y, tags)
    assert records.loss == "binary_cross_entropy"
    assert read(tmp_path / "a.npz", target=False)[1] is None
    with pytest.raises(ArgumentError, match=r"target: .*\['other', 'tags', 'y'\]"):
        read(tmp_path / "a.npz", target="absent")


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("compressed", [True, False])
def test_save_npz_alone_and_as_a_pair(tmp_path, kind, compressed):
    x, y = kind(csr()), kind((csr(6, 3, seed=1) > 0).astype(np.int8))
    sp.save_npz(tmp_path / "X.npz", x, compressed=compressed)
    sp.save_npz(tmp_path / "Y.npz", y, compressed=compressed)
    alone, none = read(tmp_path / "X.npz")
    same_sparse(alone, x)
    assert none is None
    both, labels = read(f"{tmp_path}/X.npz,{tmp_path}/Y.npz")
    same_sparse(both, x)
    same_sparse(labels, y)
    np.save(tmp_path / "y.npy", np.arange(6) % 2)
    assert read(f"{tmp_path}/X.npz, {tmp_path}/y.npy")[1].tolist() == [0, 1, 0, 1, 0, 1]
    assert load(f"{tmp_path}/X.npz,{tmp_path}/Y.npz").outputs == 3
    assert read(f"{tmp_path}/X.npz,{tmp_path}/Y.npz", target=False)[1] is None


def test_a_comma_in_the_name_of_one_file(tmp_path):
    path = tmp_path / "a,b.npy"
    np.save(path, np.eye(2))
    assert read(str(path))[0].shape == (2, 2)


def test_unsorted_csr_is_sorted(tmp_path):
    arrays = parts(x=csr())
    arrays |= {"x_data": np.array([1.0, 2.0]), "x_indices": np.array([4, 0]), "x_indptr": np.array([0, 2])}
    np.savez(tmp_path / "a.npz", **{**arrays, "x_shape": np.array([1, 5])})
    x, _ = read(tmp_path / "a.npz")
    assert x.indices.tolist() == [0, 4]
    assert x.data.tolist() == [2.0, 1.0]


def test_npy(tmp_path):
    x = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "a.npy", np.asfortranarray(x))
    np.testing.assert_array_equal(read(tmp_path / "a.npy")[0], x)
    for target in (1, -2, "1"):
        rest, y = read(tmp_path / "a.npy", target=target)
        np.testing.assert_array_equal(rest, x[:, [0, 2]])
        np.testing.assert_array_equal(y, x[:, 1])
    for target in (3, -4, "age"):
        with pytest.raises(ArgumentError, match=r"^target: "):
            read(tmp_path / "a.npy", target=target)


def test_images_are_flattened(tmp_path):
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "a.npz", x=x, y=[0, 1])
    records = read_records(tmp_path / "a.npz")
    np.testing.assert_array_equal(records.x, x.reshape(2, 12))
    assert records.image_shape == (3, 4)


@pytest.mark.parametrize(
    ("y", "expected", "classes", "loss"),
    [
        ([5, -2, 5], [1, 0, 1], ("-2", "5"), "cross_entropy"),
        ([True, False, True], [1, 0, 1], ("0", "1"), "cross_entropy"),
        (["b", "a", "é"], [1, 0, 2], ("a", "b", "é"), "cross_entropy"),
        ([b"b", b"a", "é".encode()], [1, 0, 2], ("a", "b", "é"), "cross_entropy"),
        ([[5], [2], [5]], [1, 0, 1], ("2", "5"), "cross_entropy"),
        ([0.0, 1.0, 2.0], [0, 1, 2], (), "mse"),
        ([[1, 0], [1, 1], [0, 0]], [[1, 0], [1, 1], [0, 0]], (), "binary_cross_entropy"),
        ([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], [[1, 0], [1, 1], [0, 0]], (), "binary_cross_entropy"),
        ([[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 4], [5, 6]], (), "mse"),
        ([[0.5, 2], [3, 4], [5, 6]], [[0.5, 2], [3, 4], [5, 6]], (), "mse"),
    ],
)
def test_kinds_of_target(tmp_path, y, expected, classes, loss):
    np.savez(tmp_path / "a.npz", x=np.eye(3), y=y)
    records = read_records(tmp_path / "a.npz")
    assert records.y.tolist() == expected
    assert records.y.dtype == (np.int64 if loss == "cross_entropy" else np.float32)
    assert (records.classes, records.loss) == (classes, loss)


def test_classes_of_an_earlier_file(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.eye(2), y=[7, 5])
    path = tmp_path / "a.npz"
    assert read(path, classes=("5", "6", "7"))[1].tolist() == [2, 0]
    assert read_records(path, classes=("5", "6", "7")).classes == ("5", "6", "7")
    with pytest.raises(FileError, match=r"'y'\], row 0: expected one of the 2 classes, got '7'"):
        read(path, classes=["5", "6"])
    numbers = read(path, classes=())[1]
    assert numbers.dtype == np.float32
    np.savez(path, x=np.eye(2), y=[[0, 1], [1, 1]])
    with pytest.raises(FileError, match="3 labels, got 2 columns"):
        read(path, classes=["a", "b", "c"])
    with pytest.raises(FileError, match="3 features, got 2"):
        read(path, features=3)


# -- Shared data --------------------------------------------------------------------------------------------


@needs_shared
def test_shared_bibtex():
    records = read_records(SHARED / "ml_bibtex.npz")
    assert records.x.shape == (7395, 1836)
    assert records.x.nnz == 507_746
    assert records.y.shape == (7395, 159)
    assert records.loss == "binary_cross_entropy"
    dataset = load(SHARED / "ml_bibtex.npz")
    assert dataset.x_test.shape[0] == 1479
    assert dataset.x_train.nnz + dataset.x_test.nnz == 507_746


@needs_shared
def test_shared_cora_and_tox():
    cora = load(SHARED / "planetoid_cora.npz")
    assert cora.features == 1433
    assert cora.outputs == 7
    x, y = read(SHARED / "chem_tox21.npz")
    assert x.shape == (8006, 26_809)
    assert y.shape == (8006, 12)
    assert read(SHARED / "chem_tox21.npz", target="Ymask")[1].nnz == 79_491


@needs_shared
def test_shared_files_without_samples():
    with pytest.raises(FileError, match=r"named x or X, got \['chem', 'gap', 'names'\]"):
        read(SHARED / "graph_celegans_cook2019_herm.npz")


# -- What every file has in common --------------------------------------------------------------------------


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileError, match="a folder"):
        read(tmp_path)
    for absent in (tmp_path / "absent.csv", "a" * 5000, "a\0b", f"{tmp_path}/a.npz,{tmp_path}/b.npz"):
        with pytest.raises(FileError, match="nothing of that name"):
            read(absent)
    (tmp_path / "a.txt").write_text("1,2\n")
    with pytest.raises(FileError, match=re.escape("ends in .npz, .npy, .csv")):
        read(tmp_path / "a.txt")
    with pytest.raises(KindError, match="path"):
        read(3)  # type: ignore[arg-type]
    (tmp_path / "a.csv").write_text("1,2\n")
    for target in (True, 1.5, ["a"]):
        with pytest.raises(GbnnError, match=r"^target: "):
            read(tmp_path / "a.csv", target=target)


def test_a_device_is_named_as_one() -> None:
    with pytest.raises(FileError, match="expected a file, got a pipe or device"):
        read("/dev/null")
