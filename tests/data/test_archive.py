"""Malformed npy and npz files."""

from __future__ import annotations

import io
import re
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gbnn.data import Batches, read
from gbnn.errors import FileError

fuzz = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


def csr(rows: int = 6, columns: int = 5, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, columns), dtype=np.float32) * (rng.random((rows, columns)) < 0.4)
    return sp.csr_array(dense)


def parts(**matrices: sp.csr_array) -> dict[str, np.ndarray]:
    arrays = {}
    for name, m in matrices.items():
        arrays |= {f"{name}_data": m.data, f"{name}_indices": m.indices, f"{name}_indptr": m.indptr}
        arrays[f"{name}_shape"] = np.array(m.shape)
    return arrays


def npy(array: np.ndarray, **header: object) -> bytes:
    out = io.BytesIO()
    facts = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    np.lib.format.write_array_header_1_0(out, facts)
    return out.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "an array or CSR matrix named x or X, got []"),
        ({"z": np.eye(2)}, "an array or CSR matrix named x or X, got ['z']"),
        ({"x": np.zeros(3)}, "'x']: expected shape (rows, features)"),
        ({"x": np.zeros((0, 3))}, "at least one of each"),
        ({"x": np.array([["a"]])}, "'x']: expected real numbers"),
        ({"x": np.ones((1, 1), dtype=complex)}, "'x']: expected real numbers"),
        ({"x": np.array([[1.0, np.nan]])}, "'x']: expected finite numbers, got nan at [0, 1]"),
        ({"x": np.array([[np.longdouble("1e400")]])}, "'x']: expected "),  # infinite where it is float64
        ({"x": np.eye(2), "y": np.zeros(3)}, "'y']: expected shape (2,)"),
        ({"x": np.eye(2), "y": np.array(1)}, "'y']: expected shape (2,)"),
        ({"x": np.eye(2), "y": np.array([1.0, np.inf])}, "'y']: expected finite numbers, got inf at [1]"),
        ({"x": np.eye(2), "y": np.array([1.0, 1e39])}, "'y'], row 1: expected a finite float32"),
        ({"x": np.eye(2), "y": np.array([1j, 0])}, "'y']: expected numbers, or names"),
        ({"x": np.eye(2), "y": np.array([b"\xff", b"a"])}, "'y']: expected UTF-8"),
        ({"x": np.eye(2), "y": np.zeros(2), "Y": np.zeros(2)}, "one target"),
        ({"x": np.eye(2), "y": np.zeros(2), "x_test": np.eye(2)}, "one x_test and one y_test"),
        ({"x": np.eye(2), "y": [0, 1], "x_test": np.eye(3), "y_test": [0, 1, 0]}, "2 features as in x"),
        ({"x": np.eye(2), "y": [0, 1], "x_test": np.eye(2), "y_test": [0]}, "'y_test']: expected shape (2,)"),
        ({"x": np.eye(2), "y": [0, 1], "x_test": np.eye(2), "y_test": ["a", "b"]}, "a target like that"),
        ({"x": np.eye(2), "y": [0, 1], "x_test": np.eye(2), "y_test": np.eye(2)}, "a target like that"),
    ],
)
def test_npz_with_wrong_arrays(tmp_path, arrays, words):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(FileError, match=re.escape(words)) as caught:
        read(tmp_path / "bad.npz")
    assert "bad.npz" in caught.value.where


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x_data": np.ones((2, 1))}, "1-D data"),
        ({"x_data": np.array(["a", "b"])}, "1-D data"),
        ({"x_data": np.array([1.0, np.nan])}, "finite numbers, got nan at [1, 2]"),
        ({"x_indices": np.array([0.0, 2.0])}, "indices: 1-D integers"),
        ({"x_indices": np.array([0])}, "as many indices as data"),
        ({"x_indices": np.array([0, 3])}, "column indices from 0 to 2, got 0 to 3"),
        ({"x_indices": np.array([-1, 2])}, "column indices from 0 to 2"),
        ({"x_indices": np.array([0, 2**64 - 1], dtype=np.uint64)}, "column indices from 0 to 2"),
        ({"x_indptr": np.array([0, 1])}, "3 row pointers"),
        ({"x_indptr": np.array([0, 1, 3])}, "row pointers that rise from 0 to 2"),
        ({"x_indptr": np.array([1, 1, 2])}, "row pointers that rise from 0 to 2"),
        ({"x_indptr": np.array([0, 3, 2])}, "row pointers that rise from 0 to 2"),
        ({"x_shape": np.array([2, 3, 1])}, "a shape of two numbers"),
        ({"x_shape": np.array([2, 0])}, "a shape of two numbers"),
        ({"x_shape": np.array([2, 2**61])}, "a shape of two numbers"),
        ({"x_shape": np.array([10**15, 3])}, "1000000000000001 row pointers"),
        ({"x_indices": np.array([1, 1]), "x_indptr": np.array([0, 2, 2])}, "each column once in a row"),
        ({"x_shape": None}, "an array 'x_shape'"),
    ],
)
def test_malformed_csr(tmp_path, change, words):
    arrays = {
        "x_data": np.array([1.0, 2.0]),
        "x_indices": np.array([0, 2]),
        "x_indptr": np.array([0, 1, 2]),
        "x_shape": np.array([2, 3]),
    }
    np.savez(tmp_path / "good.npz", **arrays)
    assert read(tmp_path / "good.npz")[0].toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    changed = {name: array for name, array in (arrays | change).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **changed)
    with pytest.raises(FileError, match=re.escape(words)) as caught:
        read(tmp_path / "bad.npz")
    assert "bad.npz" in caught.value.where


def test_sparse_targets_are_zeros_and_ones(tmp_path):
    y = sp.csr_array(np.array([[0, 1], [3, 0]]))
    np.savez(tmp_path / "a.npz", x=np.eye(2), **parts(y=y))
    with pytest.raises(FileError, match="row 1: expected a sparse target of zeros and ones, got 3"):
        read(tmp_path / "a.npz")
    y.data[1] = 0  # stored, and nothing
    np.savez(tmp_path / "a.npz", x=np.eye(2), **parts(y=y))
    assert read(tmp_path / "a.npz")[1].nnz == 1


def test_formats_other_than_csr(tmp_path):
    sp.save_npz(tmp_path / "a.npz", csr().tocsc())
    with pytest.raises(FileError, match="a matrix saved as CSR"):
        read(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.eye(6), y=np.zeros(6))
    sp.save_npz(tmp_path / "c.npz", csr())
    with pytest.raises(FileError, match="one matrix"):
        read(f"{tmp_path}/c.npz,{tmp_path}/b.npz")


class Trap:
    """Would write a file if it were ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "sprung")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_nothing_is_unpickled(tmp_path, name):
    trap = np.array([[Trap(tmp_path / "sprung")]], dtype=object)
    if name.endswith("npy"):
        np.save(tmp_path / name, trap, allow_pickle=True)
    else:
        np.savez(tmp_path / name, x=trap)
    with pytest.raises(FileError, match="without Python objects"):
        read(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an array in NumPy's format"),
        (b"PK\3\4", "an array in NumPy's format"),
        (npy(np.eye(2))[:-1], "bytes for float64 of shape (2, 2)"),
        (npy(np.eye(2)) + b"\0", "bytes for float64 of shape (2, 2)"),
        (npy(np.eye(2), shape=(2**40, 2**20)), "bytes for float64 of shape"),
        (npy(np.eye(2), shape=(-2, -2)), "a shape, got (-2, -2)"),
        (npy(np.eye(2), descr="nonsense"), "an array in NumPy's format"),
        (npy(np.eye(2)).replace(b"\x93NUMPY\1", b"\x93NUMPY\3"), "NumPy format 1.0 or 2.0"),
        (npy(np.array([["2020-01-01"]], dtype="M8[D]")), "real numbers"),
    ],
)
def test_npy_bad_content(tmp_path, content, words):
    (tmp_path / "bad.npy").write_bytes(content)
    with pytest.raises(FileError, match=re.escape(words)) as caught:
        read(tmp_path / "bad.npy")
    assert "bad.npy" in caught.value.where


def test_npz_bad_archive(tmp_path):
    path = tmp_path / "bad.npz"
    path.write_bytes(b"")
    with pytest.raises(FileError, match=r"a NumPy \.npz archive"):
        read(path)
    np.save(tmp_path / "a.npy", np.eye(2))
    (tmp_path / "a.npy").rename(path)
    with pytest.raises(FileError, match=r"a NumPy \.npz archive"):
        read(path)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_LZMA) as file:
        file.writestr("x.npy", npy(np.eye(2)))
    with pytest.raises(FileError, match="stored or deflated"):
        read(path)
    np.savez(path, x=np.eye(2), y=[0, 1])
    content = path.read_bytes()
    # The last byte of x: its checksum no longer fits.
    at = content.index(np.eye(2).tobytes()) + 31
    path.write_bytes(content[:at] + b"\x01" + content[at + 1 :])
    with pytest.raises(FileError, match="CRC"):
        read(path)


def test_compressed_data_with_another_checksum(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.eye(2))
    with zipfile.ZipFile(path) as file:
        checksum = file.getinfo("x.npy").CRC.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(checksum, bytes(4)))
    with pytest.raises(FileError, match="CRC"):
        read(path)


def test_archive_claim_is_not_believed(tmp_path):
    path = tmp_path / "a.npz"
    content = npy(np.eye(2), shape=(400_000_000, 1))
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", content)
    claim = len(content) - 32 + 3_200_000_000
    packed = path.read_bytes().replace(len(content).to_bytes(4, "little"), claim.to_bytes(4, "little"))
    path.write_bytes(packed)
    tracemalloc.start()
    with pytest.raises(FileError, match=f"{claim} promised"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@fuzz
@given(st.data(), st.sampled_from(["a.npz", "b.npz", "c.npy", "d.npz"]))
def test_numpy_files_damaged_anywhere(tmp_path, draw, name):
    whole = tmp_path / f"whole-{name}"
    if not whole.exists():
        if name == "a.npz":
            np.savez(whole, x=np.eye(3), y=[0, 1, 0])
        elif name == "b.npz":
            np.savez_compressed(whole, **parts(X=csr()), y=np.arange(6))
        elif name == "c.npy":
            np.save(whole, np.eye(3))
        else:
            sp.save_npz(whole, csr())
    content = whole.read_bytes()
    damaged = bytearray(content[: draw.draw(st.integers(0, len(content)))])
    if draw.draw(st.booleans()):
        damaged = bytearray(content)
    for _ in range(draw.draw(st.integers(1, 4))):
        if damaged:
            damaged[draw.draw(st.integers(0, len(damaged) - 1))] = draw.draw(st.integers(0, 255))
    path = tmp_path / name
    path.write_bytes(damaged)
    try:
        x, _ = read(path)
    except FileError as error:
        if str(path) not in error.where:
            raise
    else:
        # What still reads must be safe to use: SciPy's compiled loops follow its indices.
        next(iter(Batches(x, dtype=np.float64)))
