"""Folders of CSR arrays that stay on disk."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import graphblas as gb
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn.data import (
    Batches,
    MappedRows,
    Stream,
    open_csr,
    read,
    read_records,
    save_csr,
    save_csr_batches,
)
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError, NonFiniteError
from gbnn.rows import SparseRows

fuzz = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def csr(rows: int = 30, features: int = 50, seed: int = 0, dtype: type = np.float32) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((rows, features)) * (rng.random((rows, features)) < 0.2)).astype(dtype))


def same(a: SparseRows, b: SparseRows) -> None:
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    for name in ("starts", "columns", "values"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def nothing_but(folder: Path, *names: str) -> None:
    assert sorted(os.listdir(folder)) == sorted(names)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "form", [sp.csr_array, sp.coo_array, SparseRows.of, lambda x: SparseRows.of(x).to_graphblas()]
)
@pytest.mark.parametrize(
    "y", [None, np.arange(30) % 3, np.arange(60.0).reshape(30, 2), sp.csr_array(csr(30, 7, 1) > 0)]
)
def test_batches_are_those_of_the_matrix(tmp_path, dtype, form, y):
    x = csr(dtype=dtype)
    save_csr(tmp_path / "a", form(x), y)
    nothing_but(tmp_path, "a")
    mapped, targets = open_csr(tmp_path / "a")
    assert isinstance(mapped, MappedRows)
    assert (mapped.shape, mapped.nnz, mapped.dtype, len(mapped)) == (x.shape, x.nnz, dtype, 30)
    for shuffle in (True, False):
        both = zip(
            Batches(mapped, targets, 8, shuffle=shuffle), Batches(x, y, 8, shuffle=shuffle), strict=True
        )
        for (rows, target), (expected, wanted) in both:
            same(rows, expected)
            if sp.issparse(wanted):
                assert target.format == "csr"
                np.testing.assert_array_equal(target.toarray(), wanted.toarray())
            elif wanted is None:
                assert target is None
            else:
                np.testing.assert_array_equal(target, wanted)
                assert target.dtype == wanted.dtype
    for (dense, _), (expected, _) in zip(
        Batches(mapped, batch_size=8, sparse=False), Batches(x, batch_size=8, sparse=False), strict=True
    ):
        np.testing.assert_array_equal(dense, expected)
    assert (mapped.to_scipy() != x).nnz == 0


@fuzz
@given(
    st.lists(st.lists(st.integers(0, 2**60 - 1), unique=True, max_size=4), min_size=1, max_size=9),
    st.integers(1, 4),
)
def test_any_rows_come_back(tmp_path, rows, size):
    columns = np.array([c for row in rows for c in sorted(row)], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    x = SparseRows(starts, columns, np.arange(columns.size, dtype=np.float32), (len(rows), 2**60))
    shutil.rmtree(tmp_path / "a", ignore_errors=True)
    parts = (x.take(slice(k, k + size)) for k in range(0, len(rows), size))
    save_csr_batches(tmp_path / "a", ((part, None) for part in parts))
    mapped, y = open_csr(tmp_path / "a")
    assert y is None
    same(mapped.take(slice(None)), x)
    order = np.arange(len(rows))[::-1]
    same(mapped.take(order), x.take(order))
    assert np.load(tmp_path / "a" / "indptr.npy").tolist() == starts.tolist()


def test_numpy_and_scipy_read_it(tmp_path):
    x = csr()
    save_csr(tmp_path / "a", x)
    data, indices, indptr = (
        np.load(tmp_path / "a" / f"{n}.npy", mmap_mode="r") for n in ("data", "indices", "indptr")
    )
    assert (sp.csr_array((data, indices, indptr), shape=x.shape) != x).nnz == 0
    assert indices.dtype == np.int32
    save_csr(tmp_path / "b", sp.csr_array((np.ones(1), [2**40], [0, 1]), shape=(1, 2**60)))
    assert np.load(tmp_path / "b" / "indices.npy").dtype == np.int64


def test_read_takes_a_folder(tmp_path):
    x = csr()
    save_csr(tmp_path / "a", x, np.arange(30) % 2, classes=("no", "yes"))
    records = read_records(tmp_path / "a")
    assert (records.classes, records.loss) == (("no", "yes"), "cross_entropy")
    assert (records.x != x).nnz == 0
    assert records.y.tolist() == [0, 1] * 15
    assert read_records(tmp_path / "a", classes=("yes", "maybe", "no")).y.tolist() == [2, 0] * 15
    assert read_records(tmp_path / "a", classes=()).loss == "mse"
    assert read(tmp_path / "a", target=False)[1] is None
    with pytest.raises(FileError, match=r"row 0: expected one of the 1 classes, got 'no'"):
        read(tmp_path / "a", classes=["yes"])
    with pytest.raises(FileError, match="51 features, got 50"):
        read(tmp_path / "a", features=51)
    with pytest.raises(ArgumentError, match="target"):
        read(tmp_path / "a", target="y")
    labels = sp.csr_array(csr(30, 3, 1) > 0)
    save_csr(tmp_path / "b", x, labels, classes=("a", "b", "c"))
    records = read_records(tmp_path / "b")
    assert (records.classes, records.loss) == (("a", "b", "c"), "binary_cross_entropy")
    assert (records.y != labels).nnz == 0
    save_csr(tmp_path / "c", x, np.arange(30.0))
    assert read_records(tmp_path / "c").loss == "mse"
    assert read_records(str(tmp_path / "c")).y.dtype == np.float32


# -- Writing ------------------------------------------------------------------------------------------------


def test_a_stream_becomes_a_folder(tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"{i % 3} {i + 1}:1 {i + 5}:0.5\n" for i in range(100)))
    stream = Stream(tmp_path / "a.svm", 7)
    save_csr_batches(tmp_path / "a", stream, classes=stream.layout.classes)
    whole, folder = read_records(tmp_path / "a.svm"), read_records(tmp_path / "a")
    assert (whole.x != folder.x).nnz == 0
    np.testing.assert_array_equal(whole.y, folder.y)
    assert whole.classes == folder.classes
    text = "2 3 4\n0,3 0:1\n 2:1\n"
    (tmp_path / "b.txt").write_text(text)
    save_csr_batches(tmp_path / "b", Stream(tmp_path / "b.txt", 1))
    assert read_records(tmp_path / "b").y.toarray().tolist() == [[1, 0, 0, 1], [0] * 4]


def failing(error: BaseException):
    yield csr(), None
    raise error


@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt(), FileError("f", "a", "b")])
def test_nothing_is_left_of_a_writing_that_failed(tmp_path, error):
    with pytest.raises(type(error)):
        save_csr_batches(tmp_path / "a", failing(error))
    nothing_but(tmp_path)


def test_nothing_is_written_over(tmp_path):
    save_csr(tmp_path / "a", csr())
    (tmp_path / "b").mkdir()
    (tmp_path / "c").symlink_to("nowhere")
    for name in "abc":
        with pytest.raises(FileError, match="a name that is free"):
            save_csr(tmp_path / name, csr(3))
    with pytest.raises(FileError, match="folder that can be written"):
        save_csr(tmp_path / "absent" / "a", csr())
    assert len(open_csr(tmp_path / "a")[0]) == 30
    nothing_but(tmp_path, "a", "b", "c")


x3, y3 = csr(3), np.arange(3)


@pytest.mark.parametrize(
    ("batches", "error", "words"),
    [
        ([], ArgumentError, "batches: expected at least one batch, got none"),
        (5, KindError, "batches: "),
        ([5], KindError, "batch 0: expected a pair"),
        ([(x3, y3), (csr(3, 51), y3)], ArgumentError, "batch 1: expected .*50.* as in the first, got .*51"),
        ([(x3, y3), (csr(3, dtype=np.float64), y3)], ArgumentError, "batch 1: expected .*float32"),
        ([(x3, y3), (x3, None)], ArgumentError, "batch 1: "),
        ([(x3, y3), (x3, y3 * 1.0)], ArgumentError, "batch 1: "),
        ([(x3, y3), (x3, sp.csr_array(np.eye(3)))], ArgumentError, "batch 1: "),
        ([(x3, y3[:2])], ArgumentError, r"batch 0, y: expected shape \(3,\)"),
        ([(x3, sp.csr_array(np.eye(2)))], ArgumentError, "batch 0, y: "),
        ([(x3, np.zeros((3, 1, 1)))], ArgumentError, "batch 0, y: "),
        ([(x3, ["a"] * 3)], KindError, "batch 0, y: "),
        ([(x3, [np.nan] * 3)], NonFiniteError, "batch 0, y: "),
        ([(x3 * np.float32(np.inf), y3)], NonFiniteError, "batch 0, x: "),
        ([("x", None)], KindError, "batch 0, x: "),
    ],
)
def test_wrong_batches(tmp_path, batches, error, words):
    with np.errstate(invalid="ignore"), pytest.raises(error, match=words):
        save_csr_batches(tmp_path / "a", batches)
    nothing_but(tmp_path)


def test_wrong_matrices(tmp_path):
    for x, y in ((np.eye(3), None), (x3, y3[:2]), (x3, ["a"] * 3), (gb.Matrix(complex, 2, 2), None)):
        with pytest.raises(GbnnError):
            save_csr(tmp_path / "a", x, y)
    with pytest.raises(ArgumentError, match="classes: expected 3 names, one a label, got 2"):
        save_csr(tmp_path / "a", x3, sp.csr_array(np.eye(3)), classes=["a", "b"])
    with pytest.raises(KindError, match="folder"):
        save_csr(5, x3)  # type: ignore[arg-type]
    nothing_but(tmp_path)


# -- Memory -------------------------------------------------------------------------------------------------


def batches_of(rows: int):
    rng = np.random.default_rng(0)
    for first in range(0, rows, 500):
        columns = np.sort(rng.integers(0, 2**50, (500, 30)), axis=1).ravel()
        x = SparseRows(np.arange(501) * 30, columns, np.ones(15_000, np.float32), (500, 2**60))
        yield x, np.arange(first, first + 500)


def test_memory_does_not_grow_with_the_rows(tmp_path):
    peaks = []
    for rows in (2_000, 2_000, 20_000):
        name = tmp_path / f"{rows}-{len(peaks)}"
        writing, _ = peak_while(lambda rows=rows, name=name: save_csr_batches(name, batches_of(rows)))
        opening, (x, y) = peak_while(lambda name=name: open_csr(name))
        reading, count = peak_while(
            lambda x=x, y=y: sum(rows.nnz for rows, _ in Batches(x, y, 500, shuffle=False))
        )
        assert count == rows * 30
        peaks.append((writing, opening, reading))
    for few, many in zip(peaks[1], peaks[2], strict=True):
        assert many == pytest.approx(few, rel=0.03, abs=1000)
    assert peaks[2][1] < 50_000


# -- Damage -------------------------------------------------------------------------------------------------


def everything(folder: Path) -> None:
    x, y = open_csr(folder)
    for rows, _ in Batches(x, y, 4):
        assert np.isfinite(rows.values).all()
        assert (rows.columns >= 0).all()
        assert (rows.columns < rows.shape[1]).all()


@pytest.mark.parametrize("sparse_y", [True, False])
def test_every_file_is_needed_and_none_may_be_cut(tmp_path, sparse_y):
    y = sp.csr_array(csr(30, 7, 1) > 0) if sparse_y else np.arange(30)
    save_csr(tmp_path / "a", csr(), y)
    for path in sorted((tmp_path / "a").iterdir()):
        content = path.read_bytes()
        for end in (0, 1, 60, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:end])
            with pytest.raises(FileError):
                open_csr(tmp_path / "a")
        path.write_bytes(content + b"x")
        with pytest.raises(FileError):
            open_csr(tmp_path / "a")
        path.unlink()
        with pytest.raises(FileError):
            read_records(tmp_path / "a")
        with pytest.raises(FileError):
            open_csr(tmp_path / "a")
        path.write_bytes(content)
    everything(tmp_path / "a")


@fuzz
@given(st.data())
def test_bytes_changed_anywhere_never_crash(tmp_path, draw):
    shutil.rmtree(tmp_path / "a", ignore_errors=True)
    save_csr(tmp_path / "a", csr(12), sp.csr_array(csr(12, 7, 1) > 0))
    names = sorted(os.listdir(tmp_path / "a"))
    for _ in range(draw.draw(st.integers(1, 3))):
        path = tmp_path / "a" / draw.draw(st.sampled_from(names))
        content = bytearray(path.read_bytes())
        at = draw.draw(st.integers(0, len(content) - 1))
        content[at] = draw.draw(st.sampled_from([0, 1, 127, 128, 255, ord("9"), ord("["), ord("f")]))
        path.write_bytes(bytes(content))
    try:
        everything(tmp_path / "a")
    except FileError as error:
        if str(tmp_path) not in error.where:
            raise
    try:
        read_records(tmp_path / "a")
    except FileError as error:
        if str(tmp_path) not in error.where:
            raise


@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        ("indices", 3, -1, "row 0: expected ascending columns from 0 to 49"),
        ("indices", -1, 50, "row 29: expected ascending columns from 0 to 49"),
        ("indices", 3, 0, "row 0: expected ascending columns"),
        ("data", -1, np.nan, "row 29: expected ascending columns from 0 to 49 with finite numbers"),
        ("indptr", 1, 10**12, "row 0: .* got row pointers that do not rise"),
        ("indptr", 1, -1, "row 0: .* got row pointers that do not rise"),
        ("indptr", -1, 0, "expected ends 0 and"),
        ("indptr", 0, 1, "expected ends 0 and"),
    ],
)
def test_what_is_wrong_in_the_arrays_is_named(tmp_path, name, at, value, words):
    save_csr(tmp_path / "a", csr())
    path = tmp_path / "a" / f"{name}.npy"
    array = np.load(path)
    array[at] = value
    np.save(path, array)
    with pytest.raises(FileError, match=words):
        everything(tmp_path / "a")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, '"format"'),
        ({"shape": [30]}, '"shape"'),
        ({"shape": [30, 0]}, '"shape"'),
        ({"shape": [30, 2**61]}, '"shape"'),
        ({"shape": [True, 5]}, '"shape"'),
        ({"shape": [31, 50]}, r"int64 of shape \(32,\)"),
        ({"target": 5}, '"target"'),
        ({"target": {"sparse": True, "shape": []}}, '"target"'),
        ({"target": {"sparse": False, "shape": [2]}}, r"shape \(30, 2\)"),
        ({"classes": "abc"}, '"classes"'),
    ],
)
def test_about_is_checked(tmp_path, change, words):
    save_csr(tmp_path / "a", csr(), np.arange(30))
    path = tmp_path / "a" / "about.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError, match=words):
        open_csr(tmp_path / "a")


def test_wrong_rows_and_paths(tmp_path):
    save_csr(tmp_path / "a", csr())
    x, _ = open_csr(tmp_path / "a")
    for rows, error in (([30], ArgumentError), ([-1], ArgumentError), ([0.5], KindError), (3, KindError)):
        with pytest.raises(error, match="rows"):
            x.take(rows)
    for path in (tmp_path, tmp_path / "absent", "a\0b", "a" * 5000):
        with pytest.raises(FileError):
            open_csr(path)
    big = csr(2, 3, dtype=np.float64) + sp.csr_array(np.full((2, 3), 1e300))
    save_csr(tmp_path / "b", big)
    with pytest.raises(ArgumentError, match="fit in float32"):
        list(Batches(*open_csr(tmp_path / "b")))
    list(Batches(*open_csr(tmp_path / "b"), dtype=np.float64))
