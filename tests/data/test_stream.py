"""Batches from text files, whatever their size."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn.data import Layout, Stream, read, read_records, text_blocks
from gbnn.errors import ArgumentError, FileError, KindError
from gbnn.rows import SparseRows

fuzz = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def numbered(path: Path, rows: int, label: str = "{i}") -> Path:
    """A file whose row i has its number as label and in its values, and i % 4 pairs and one."""
    lines = []
    for i in range(rows):
        pairs = " ".join(f"{k + 2}:{i}" for k in range(i % 4))
        lines.append(f"{label.format(i=i, k=i % 3)} 1:{i} {pairs}\n")
    path.write_text("".join(lines))
    return path


def joined(stream: Stream) -> tuple[sp.csr_array, np.ndarray]:
    xs, ys = zip(*stream, strict=True)
    y = sp.vstack(ys, format="csr") if sp.issparse(ys[0]) else np.concatenate(ys)
    return sp.vstack([x.to_scipy() for x in xs], format="csr"), y


@pytest.mark.parametrize("label", ["{k}", "0.{i}", "{i},1000", "+{k}"])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("block", [64, 2**18])
def test_in_order_it_is_what_read_gives(tmp_path, monkeypatch, label, size, block):
    path = numbered(tmp_path / "a.svm", 50, label)
    monkeypatch.setattr(text_blocks, "BLOCK", block)
    expected = read_records(path)
    stream = Stream(path, size)
    assert len(stream) == len(list(stream)) == -(-50 // size)
    for _ in range(2):  # each epoch reads it again
        x, y = joined(stream)
        np.testing.assert_array_equal(x.toarray(), expected.x.toarray())
        if sp.issparse(y):
            y, other = y.toarray(), expected.y.toarray()
        else:
            other = expected.y
        np.testing.assert_array_equal(y, other)
        assert y.dtype == other.dtype
    assert (stream.layout.classes, stream.layout.loss) == (expected.classes, expected.loss)
    assert stream.layout.zero_based is expected.zero_based


@fuzz
@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 50), st.integers(0, 3))
def test_shuffled_every_row_comes_once_and_whole(tmp_path, rows, size, buffer, seed):
    path = numbered(tmp_path / "a.svm", rows)
    buffer = buffer if buffer >= size else 0
    sizes, seen = [], []
    for x, y in Stream(path, size, buffer=buffer, seed=seed, zero_based=False):
        assert isinstance(x, SparseRows)
        sizes.append(len(y))
        names = [int(k) for k in x.values[x.starts[:-1]]]
        np.testing.assert_array_equal(x.values, np.repeat(names, np.diff(x.starts)))
        np.testing.assert_array_equal(np.diff(x.starts), [k % 4 + 1 for k in names])
        seen += names
    assert sorted(seen) == list(range(rows))
    assert sizes[:-1] == [size] * (len(sizes) - 1)
    if not buffer:
        assert seen == list(range(rows))


def test_order_follows_the_seed(tmp_path, monkeypatch):
    path = numbered(tmp_path / "a.svm", 200)

    def epochs(seed, buffer=40):
        stream = Stream(path, 10, buffer=buffer, seed=seed)
        return [np.concatenate([y for _, y in stream]).tolist() for _ in range(2)]

    first, second = epochs(1)
    assert first != second
    assert epochs(1) == [first, second]
    assert epochs(2)[0] != first
    monkeypatch.setattr(text_blocks, "BLOCK", 100)
    assert epochs(1) == [first, second]
    rng = np.random.default_rng(5)
    stream = Stream(path, 10, buffer=40, seed=rng)
    assert stream.generator is rng
    state = rng.bit_generator.state
    one = [y.tolist() for _, y in stream]
    rng.bit_generator.state = state
    assert [y.tolist() for _, y in stream] == one


def test_rows_travel_far_and_none_waits_forever(tmp_path):
    order = np.concatenate(
        [
            [int(v) for v in x.values[x.starts[:-1]]]
            for x, _ in Stream(numbered(tmp_path / "a.svm", 2000), 10, buffer=100)
        ]
    )
    moved = order - np.arange(2000)
    assert np.abs(moved).max() > 100  # farther than a block of that size would let them
    assert abs(moved.mean()) < 1
    whole = Stream(tmp_path / "a.svm", 10, buffer=5000)
    order = np.concatenate([y for _, y in whole])
    assert abs(np.corrcoef(order, np.arange(2000))[0, 1]) < 0.1


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK", 2**13)
    rng = np.random.default_rng(0)

    def write(rows: int) -> Path:
        path = tmp_path / f"{rows}.svm"
        with path.open("w") as file:
            for i in range(rows):
                file.write(
                    f"{i % 5} "
                    + " ".join(f"{k}:{v:.4f}" for k, v in zip(range(1, 13), rng.random(12), strict=True))
                    + "\n"
                )
        return path

    few, many = write(2_000), write(20_000)
    for options in ({}, {"buffer": 500}):

        def passes(path: Path, options=options) -> int:
            return peak_while(lambda: sum(len(y) for x, y in Stream(path, 100, **options)))[0]

        passes(few)
        # NumPy and the interpreter keep small blocks that were freed; the larger file has 1.8 MB more.
        assert passes(many) < passes(few) + 100_000
        assert many.stat().st_size > few.stat().st_size + 1_800_000


def test_extreme_classification(tmp_path):
    text = "4 3 6\n0,5 0:1 2:2\n 1:1\n5 2:3\n1,2,3\n"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    expected_x, expected_y = read(tmp_path / "a.txt")
    for name in ("a.txt", "a.txt.gz"):
        stream = Stream(tmp_path / name, 3)
        assert stream.layout == Layout(4, 3, 6, True, "binary_cross_entropy")
        x, y = joined(stream)
        np.testing.assert_array_equal(x.toarray(), expected_x.toarray())
        np.testing.assert_array_equal(y.toarray(), expected_y.toarray())
    assert all(y is None for _, y in Stream(tmp_path / "a.txt", 3, targets=False))


@pytest.mark.parametrize("buffer", [0, 3])
def test_a_header_is_held_against_the_rows(tmp_path, buffer):
    path = tmp_path / "a.txt"
    text = "3 3 6\n0,5 0:1 2:2\n1 1:1\n5 2:3\n"
    seen = []
    for end in range(len(text) + 1):
        path.write_text(text[:end])
        try:
            seen = [y for _, y in Stream(path, 2, buffer=buffer)]
        except FileError as error:
            assert "a.txt" in error.where  # noqa: PT017
        else:
            assert end > text.index("5 2:3")
    assert sum(y.shape[0] for y in seen) == 3
    path.write_text(text + "5 1:1\n")
    with pytest.raises(FileError, match=r"a\.txt, line 5: expected 3 rows, as its header says, got another"):
        list(Stream(path, 2, buffer=buffer))


def test_a_file_cut_anywhere_is_refused_or_read_before_anything_is_trained_on(tmp_path):
    content = b"1 1:0.5 3:2e1\r\n-1 2:1 # comment\n1 qid:4 4:1\n"
    path = tmp_path / "a.svm"
    for end in range(len(content) + 1):
        path.write_bytes(content[:end])
        try:
            stream = Stream(path, 2)
        except FileError as error:
            assert "a.svm" in error.where  # noqa: PT017
        else:
            assert sum(len(y) for _, y in stream) == stream.rows


@fuzz
@given(st.data())
def test_damaged_anywhere(tmp_path, draw):
    content = bytearray(b"1 0:0.5 3:2\n-1 2:1 # comment\n2 4:1\n")
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(content) - 1))
        content[at] = draw.draw(st.sampled_from(b"0:,\n\r\t\0\xff_x-e# .+q"))
    path = tmp_path / "a.svm"
    path.write_bytes(bytes(content))
    try:
        stream = Stream(path, 2)
    except FileError:
        with pytest.raises(FileError):
            read(path)
        return
    x, y = joined(stream)
    expected = read_records(path)
    np.testing.assert_array_equal(x.data, expected.x.data)
    np.testing.assert_array_equal(x.indices, expected.x.indices)
    assert y.shape == expected.y.shape


def test_a_test_file_is_read_as_the_training_file(tmp_path):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("7 0:1 2:1\n5 1:1\n")
    test.write_text("5 2:1\n")
    known = Stream(train).layout
    as_train = {"features": known.features, "classes": known.classes, "zero_based": known.zero_based}
    ((x, y),) = Stream(test, **as_train)
    assert (x.columns.tolist(), y.tolist(), x.shape) == ([2], [0], (1, 3))
    test.write_text("5 3:1\n")
    with pytest.raises(FileError, match="line 1: expected 3 features, got index 3"):
        Stream(test, **as_train)
    test.write_text("5 1:1\n\n6 2:1\n")
    with pytest.raises(FileError, match=r"line 3: expected one of the 2 classes, got '6'"):
        Stream(test, **as_train)
    test.write_text("5 0:1\n")
    with pytest.raises(FileError, match="line 1: expected indices from 1, as zero_based=False says"):
        Stream(test, zero_based=False)


def test_a_known_layout_needs_no_first_pass(tmp_path):
    path = numbered(tmp_path / "a.svm", 20, "{k}")
    layout = Stream(path).layout
    path.write_text(path.read_text().replace("0 1:9", "0 1:x"))
    stream = Stream(path, 5, layout=layout)
    with pytest.raises(FileError, match="line 10: expected index:value pairs, got '1:x'"):
        list(stream)
    for wrong, words in (
        (layout._replace(rows=19), "line 20: expected 19 rows, as a first pass found, got another"),
        (layout._replace(rows=21), "line 20: expected 21 rows, as a first pass found, got 20"),
        (layout._replace(features=3), "expected indices from 1 to 3"),
        (layout._replace(classes=("0", "1")), "expected one of the 2 classes, got '2'"),
    ):
        with pytest.raises(FileError, match=words):
            list(Stream(numbered(path, 20, "{k}"), 5, layout=wrong))
    with pytest.raises(ArgumentError, match="layout"):
        Stream(path, layout=layout, features=4)
    with pytest.raises(KindError, match="layout"):
        Stream(path, layout=(1, 2))  # type: ignore[arg-type]


def test_float64_and_no_targets(tmp_path):
    path = numbered(tmp_path / "a.svm", 5, "what,ever")
    ((x, y),) = Stream(path, targets=False, dtype=np.float64)
    assert (x.dtype, y) == (np.float64, None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"batch_size": 0}, ArgumentError),
        ({"buffer": -1}, ArgumentError),
        ({"buffer": 5}, ArgumentError),
        ({"features": 0}, ArgumentError),
        ({"zero_based": 1}, KindError),
        ({"targets": None}, KindError),
        ({"seed": "x"}, KindError),
        ({"dtype": np.int8}, KindError),
    ],
)
def test_wrong_options_are_named(tmp_path, options, error):
    with pytest.raises(error, match=rf"^{next(iter(options))}: "):
        Stream(numbered(tmp_path / "a.svm", 3, "{k}"), **options)


def test_paths_that_are_no_files(tmp_path):
    for path in (tmp_path, tmp_path / "absent", "a\0b", "a" * 5000):
        with pytest.raises(FileError, match="readable file"):
            Stream(path)
    with pytest.raises(KindError, match="path"):
        Stream(3)  # type: ignore[arg-type]
