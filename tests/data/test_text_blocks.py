"""The fast parser of svmlight lines gives what the plain strict reader in tests/support gives."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import strict_svmlight

from gbnn.data import read_records, text_blocks
from gbnn.data.svmlight import read_svmlight
from gbnn.data.text_blocks import blocks, joined
from gbnn.errors import FileError

fuzz = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(path, content: bytes) -> None:
    """Read by both: the same rows and targets, or an error of the same line."""
    path.write_bytes(content)
    wanted = None
    try:
        expected_x, expected = strict_svmlight.read_svmlight(path)
    except FileError as error:
        wanted = error
    if wanted is not None:
        with pytest.raises(FileError) as caught:
            read_svmlight(path)
        if len(content.splitlines()) == 1:
            assert (caught.value.expected, str(caught.value.got)) == (wanted.expected, str(wanted.got))
        return
    x, target, layout = read_svmlight(path)
    assert x.shape == expected_x.shape == (layout.rows, layout.features)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(x, name), getattr(expected_x, name))
    assert (np.signbit(x.data) == np.signbit(expected_x.data)).all()
    assert (target.classes, target.loss) == (expected.classes, expected.loss)
    y, other = (t.toarray() if hasattr(t, "toarray") else t for t in (target.y, expected.y))
    np.testing.assert_array_equal(y, other)
    assert y.dtype == other.dtype


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e3, 1e3).map("{:.17g}".format),
    st.floats(-1e3, 1e3).map("{:.4f}".format),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["nan", "inf", "-inf", "1e39", "1e-46", "1e", "", ".", "1_0", "0x1", "1e99999", "-0", "٣"]
    ),
)
labels = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(
        [
            "+1",
            "-1",
            "007",
            "-0",
            "1.5",
            "nan",
            "cat",
            "",
            "1,2",
            "3,1",
            "1,",
            ",",
            "1,-2",
            "9" * 18,
            "9" * 19,
            "é",
        ]
    ),
)
keys = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from(["-1", "+3", "00005", str(10**17), "1_0", "a", "", "1.0", "9" * 30, "٣"]),
)
pairs = st.builds("{}:{}".format, keys, numbers)
blanks = st.sampled_from([" ", "  ", "\t", " \t "])
ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", " \n", " # a:b\n", "#\r\n", "# é\n", "\x0c\n"])


@st.composite
def lines(draw: st.DrawFn) -> str:
    words = [draw(labels), *draw(st.sampled_from([[], ["qid:3"]])), *draw(st.lists(pairs, max_size=4))]
    return draw(st.sampled_from(["", " ", "\t"])) + draw(blanks).join(words) + draw(ends)


@fuzz
@given(st.lists(lines(), min_size=1, max_size=4), st.booleans())
def test_any_lines(tmp_path, text, cut):
    same(tmp_path / "a.svm", "".join(text).encode()[: -1 if cut else None])


@fuzz
@given(numbers, st.sampled_from(["", " ", "#", "\n"]))
def test_any_number(tmp_path, number, end):
    same(tmp_path / "a.svm", f"1 1:{number}{end}".encode())


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**31 - 2), st.sampled_from([-2, -1, 0, 1, 2]))
def test_numbers_at_the_middle_between_two_float32_round_as_python_does(tmp_path, bits, ulps):
    low = np.array([bits], dtype=np.uint32).view(np.float32)[0]
    if not np.isfinite(low) or not np.isfinite(np.nextafter(low, np.float32(np.inf))):
        return
    middle = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2
    near = middle
    for _ in range(abs(ulps)):
        near = np.nextafter(near, np.inf * ulps)
    same(tmp_path / "a.svm", f"1 1:{near!r} 2:{near:.25e} 3:{near:.17g} 4:{near:.30f}\n".encode())


@fuzz
@given(st.data())
def test_damaged_anywhere(tmp_path, draw):
    content = bytearray(b"1 1:0.5 3:2\n-1 2:1 # comment\r\n1,2 qid:4 4:1\n")
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(content) - 1))
        content[at] = draw.draw(st.sampled_from(b"0:,\n\r\t\0\xff_x-e# .+q"))
    same(tmp_path / "a.svm", bytes(content))


def test_cut_at_every_byte(tmp_path):
    content = b"1 1:0.5 3:2e1\r\n-1 2:1 # comment\n+1 qid:4 4:1\n"
    for end in range(len(content)):
        same(tmp_path / "a.svm", content[:end])


@pytest.mark.parametrize("size", [4, 16, 61, 1000])
def test_blocks_of_any_size_give_the_same_rows(tmp_path, monkeypatch, size):
    text = "".join(
        f"{i % 3} {i + 1}:0.{i:04d} {i + 2}:{'1' * (i % 38 + 1)} {i + 3}:-2e-3{' # c' * (i % 5)}\r\n"
        for i in range(60)
    )
    (tmp_path / "a.svm").write_bytes(text.encode())
    whole = joined(list(blocks(tmp_path / "a.svm")))
    monkeypatch.setattr(text_blocks, "BLOCK", size)
    parts = joined(list(blocks(tmp_path / "a.svm")))
    for name, a, b in zip(whole._fields, whole, parts, strict=True):
        if name == "texts":
            assert a == b
        else:
            np.testing.assert_array_equal(a, b)
    assert whole.lines.tolist() == list(range(1, 61))


def test_many_rows_without_pairs_fit(tmp_path):
    (tmp_path / "a.svm").write_text("1\n" * 200_000 + "0 5:1\n")
    x, target, _ = read_svmlight(tmp_path / "a.svm")
    assert x.shape == (200_001, 5)
    assert target.y.sum() == 200_000


def test_gzip_is_told_by_its_content(tmp_path):
    packed = gzip.compress(b"1 1:0.5\n0 2:1\n" * 1000)
    for name in ("a.svm", "a.svm.gz", "A.LIBSVM.GZ"):
        (tmp_path / name).write_bytes(packed)
        assert read_records(tmp_path / name).x.shape == (2000, 2)
    for end in range(0, len(packed), 3):
        (tmp_path / "b.svm.gz").write_bytes(packed[:end])
        with pytest.raises(FileError, match=r"b\.svm\.gz"):
            read_records(tmp_path / "b.svm.gz")
    (tmp_path / "b.svm.gz").write_bytes(packed[:20] + b"\xff" * 9 + packed[29:])
    with pytest.raises(FileError, match=r"b\.svm\.gz"):
        read_records(tmp_path / "b.svm.gz")


# -- Bases --------------------------------------------------------------------------------------------------


def test_bases(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 3:2\n0 2:1\n")
    assert read_records(path).zero_based is False
    assert read_records(path).x.shape == (2, 3)
    from_zero = read_records(path, zero_based=True)
    assert from_zero.x.toarray().tolist() == [[0, 1, 0, 2], [0, 0, 1, 0]]
    path.write_text("1 1:1\n0 0:1\n")
    assert read_records(path).zero_based is True
    with pytest.raises(
        FileError, match=r"line 2: expected indices from 1, as zero_based=False says, got index 0"
    ):
        read_records(path, zero_based=False)


def test_a_test_file_is_read_by_the_base_of_its_training_file(tmp_path):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("1 0:1 2:1\n0 1:1\n")
    test.write_text("1 2:1\n")  # no 0 in it: by itself it would count from 1
    known = read_records(train)
    x = read_records(test, classes=known.classes, features=3, zero_based=known.zero_based).x
    assert x.indices.tolist() == [2]
    test.write_text("1 3:1\n")  # counts from 1, as the training file does not
    with pytest.raises(FileError, match="line 1: expected 3 features, got index 3"):
        read_records(test, classes=known.classes, features=3, zero_based=known.zero_based)


def test_indices_up_to_two_to_the_sixty(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1 {2**60}:2\n")
    assert read_records(path).x.shape == (1, 2**60)
    path.write_text(f"1 1:1\n1 {2**60 + 1}:2\n")
    with pytest.raises(FileError, match="line 2: expected index:value pairs"):
        read_records(path)
    path.write_text(f"1 0:1 {2**60}:2\n")
    with pytest.raises(FileError, match=r"line 1: expected at most 2\*\*60 features"):
        read_records(path)


# -- Extreme classification ---------------------------------------------------------------------------------

XC = b"3 4 5\n0,3 0:0.5 3:2\n 1:1\n4 2:1e0\n"


def test_extreme_classification(tmp_path):
    for name in ("a.txt", "a.svm", "A.TXT"):
        (tmp_path / name).write_bytes(XC)
        records = read_records(tmp_path / name)
        assert records.x.toarray().tolist() == [[0.5, 0, 0, 2], [0, 1, 0, 0], [0, 0, 1, 0]]
        assert records.y.toarray().tolist() == [[1, 0, 0, 1, 0], [0] * 5, [0, 0, 0, 0, 1]]
        assert (records.classes, records.loss, records.zero_based) == ((), "binary_cross_entropy", True)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(XC.replace(b"\n", b"\r\n")))
    named = read_records(tmp_path / "a.txt.gz", classes=list("abcde"), features=4)
    assert named.classes == tuple("abcde")
    assert read_records(tmp_path / "a.txt", target=False).y is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"4 4 5\n0 0:1\n1 1:1\n", "line 3: expected 4 rows, as its header says, got 2 up to its end"),
        (b"1 4 5\n0 0:1\n\n1 1:1\n", "line 4: expected 1 rows, as its header says, got another"),
        (b"2 4 5\n0 0:1\n1 4:1\n", "line 3: expected indices from 0 to 3"),
        (b"2 4 5\n0 0:1\n5 3:1\n", "line 3: expected labels from 0 to 4, got '5'"),
        (b"2 4 5\n0 0:1\n-1 3:1\n", "line 3: expected integer labels joined by commas, got '-1'"),
        (b"2 4 5\n0 0:1\n1.5 3:1\n", "line 3: expected integer labels joined by commas, got '1.5'"),
        (b"2 4 5\n0 0:1\n1,1 3:1\n", "line 3: expected each label once, got [1, 1]"),
        (b"2 4 5\n0 0:1\n1 3:1 3:2\n", "line 3: expected each index once, got 3 twice"),
        (b"2 4 5\n0 0:1\n1 3:nan\n", "line 3: expected finite float32 numbers, got nan"),
        (b"0 4 5\n", "line 1: expected sizes from 1"),
        (b"2 4 5\n", "expected 2 rows below its header, got none"),
        (f"2 {2**60 + 1} 5\n".encode(), "line 1: expected sizes from 1"),
    ],
)
def test_extreme_classification_bad_content(tmp_path, content, words):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_records(tmp_path / "a.txt")
    assert words in str(caught.value)


def test_extreme_classification_cut_at_every_byte(tmp_path):
    path = tmp_path / "a.txt"
    for end in range(len(XC)):
        path.write_bytes(XC[:end])
        try:
            records = read_records(path)
        except FileError as error:
            assert "a.txt" in error.where  # noqa: PT017
        else:
            # Nothing shows a cut inside the last row.
            assert records.x.shape == (3, 4)
            assert end > XC.index(b"4 2:1")
