"""csv, tsv and svmlight."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gbnn.data import Batches, read, read_records
from gbnn.errors import ArgumentError, FileError

fuzz = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# -- csv and tsv --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "A.CSV"])
@pytest.mark.parametrize("header", ["", "length,width,kind\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_table_round_trip(tmp_path, name, header, end, mark):
    body = ["5.1,-3e-2,iris", "4,+0.5,rose", "1e3,.25,iris"]
    text = header + (end or "\n").join(body) + end
    if name.endswith("tsv"):
        text = text.replace(",", "\t")
    records = read_records(write(tmp_path, mark + text.encode(), name))
    expected = np.array([[5.1, -0.03], [4, 0.5], [1000, 0.25]], dtype=np.float32)
    np.testing.assert_array_equal(records.x, expected)
    assert records.x.dtype == np.float32
    assert records.y.tolist() == [0, 1, 0]
    assert records.classes == ("iris", "rose")


@pytest.mark.parametrize("target", ["kind", 0, -3, "0", "-3"])
@pytest.mark.parametrize("header", [True, False])
def test_table_target_column(tmp_path, target, header):
    path = write(tmp_path, ("kind,a,b\n" if header else "") + "x,1,2\ny,3,4\n")
    if target == "kind" and not header:
        with pytest.raises(ArgumentError, match="target: expected one of the columns"):
            read(path, target=target)
        return
    x, y = read(path, target=target)
    assert x.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [0, 1]


@pytest.mark.parametrize("target", ["age", 3, -4, "3", "kin"])
def test_table_has_no_such_column(tmp_path, target):
    path = write(tmp_path, "kind,a,b\nx,1,2\n")
    with pytest.raises(ArgumentError, match=r"target: .*a\.csv: 0 to 2, or a name such as 'kind'"):
        read(path, target=target)


def test_table_name_of_two_columns(tmp_path):
    with pytest.raises(ArgumentError, match="that one column"):
        read(write(tmp_path, "k,a,k\n1,2,3\n"), target="k")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("0,1,label\n5,6,7\n", 1),  # pandas' own names: numbers, but for the target
        ("0,1,2\n5,6,7\n", 2),
        ("1.5,2,cat\n2.5,3,dog\n", 2),
        ("1x1,1x2,label\n0,255,3\n", 1),
        ("a,b,cat\n1,2,dog\n", 1),
        ("1,2,cat\n", 1),
        ("1,2,cat\n3,4,5\n6,7,dog\n", 3),
    ],
)
def test_table_header_is_told_from_a_row(tmp_path, text, rows):
    assert read(write(tmp_path, text))[0].shape == (rows, 2)


def test_table_without_target(tmp_path):
    path = write(tmp_path, "1,2\n3,4\n")
    for options in ({"target": False}, {"features": 2}):
        x, y = read(path, **options)
        assert x.tolist() == [[1, 2], [3, 4]]
        assert y is None
    assert read(path, features=1)[1].tolist() == [0, 1]
    assert read(write(tmp_path, "5\n6\n", "b.csv"), target=False)[0].tolist() == [[5], [6]]
    with pytest.raises(FileError, match=r"a\.csv: expected 3 feature columns, got 1"):
        read(path, features=3)


@pytest.mark.parametrize(
    ("column", "expected", "classes", "loss"),
    [
        (["10", "9", "+9"], [1, 0, 0], ("9", "10"), "cross_entropy"),
        (["10", "9.0", "8"], [10, 9, 8], (), "mse"),
        (["10", "b", "9"], [0, 2, 1], ("10", "9", "b"), "cross_entropy"),
        ([" a", "b ", "a"], [0, 1, 0], ("a", "b"), "cross_entropy"),
        (
            ['"a,b"', '"say ""hi"""', '"two\nlines"'],
            [0, 1, 2],
            ("a,b", 'say "hi"', "two\nlines"),
            "cross_entropy",
        ),
        (["1" * 30, "2" * 30, "3"], [1e30 / 9, 2e30 / 9, 3], (), "mse"),
    ],
)
def test_table_kinds_of_target(tmp_path, column, expected, classes, loss):
    text = "".join(f"{i},{field}\n" for i, field in enumerate(column))
    records = read_records(write(tmp_path, text))
    np.testing.assert_allclose(records.y, expected, rtol=1e-6)
    assert (records.classes, records.loss) == (classes, loss)


def test_table_classes_of_an_earlier_file(tmp_path):
    path = write(tmp_path, "1,b\n2,7\n")
    assert read(path)[1].tolist() == [0]  # by itself that reads as a name and a number
    assert read(path, classes=("7", "a", "b"))[1].tolist() == [2, 0]
    with pytest.raises(FileError, match=r"line 2: expected one of the 2 classes, got '7'"):
        read(path, classes=("a", "b"))
    with pytest.raises(FileError, match="line 2: expected a number as target, got 'b'"):
        read(write(tmp_path, "1,7\n2,b\n"), classes=())
    numbers = write(tmp_path, "1,7\n2,07\n", "b.csv")
    assert read(numbers, classes=("07", "7"))[1].tolist() == [1, 0]  # as they are spelled, if all are known
    assert read(numbers, classes=("6", "7"))[1].tolist() == [1, 1]
    assert read_records(numbers, classes=()).loss == "mse"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "rows of numbers, got an empty file"),
        (b"\n\n\n", "rows of numbers, got an empty file"),
        (b"a,b,c\n", "rows below its header, got none"),
        (b"1\n2\n", "a feature column beside the target"),
        (b"1;2;3\n", "a feature column beside the target"),
        (b"1,2,3\n4,5\n", ", line 2: expected 3 fields as in line 1, got 2"),
        (b"1,2,3\n\n4,5,6,7\n", ", line 3: expected 3 fields as in line 1, got 4"),
        (b"a,b,c\n1,2,x\n3,oops,y\n", ", line 3: expected a number in each feature column, got 'oops'"),
        (b"1,2,,x\n3,4,5,y\n", ", line 1: expected a number in each feature column, got ''"),
        (b"1,,x\n3,4,y\n", ", line 1: expected a number in each feature column, got ''"),
        (b"1,oops,2,x\n3,4,5,y\n", ", line 1: expected a number in each feature column, got 'oops'"),
        (b"1,2,x\n3,1_0,y\n", ", line 2: expected a number in each feature column, got '1_0'"),
        (b"1,2,x\n3,nan,y\n", ", line 2: expected finite float32 numbers, got nan"),
        (b"1,2,x\n\n3,-inf,y\n", ", line 3: expected finite float32 numbers, got -inf"),
        (b"1,2,x\n3,1e39,y\n", ", line 2: expected finite float32 numbers, got 1e+39"),
        (b"1,2,x\n3,4,\n", ", line 2: expected a target, got an empty field"),
        (b"1,2,0.5\n3,4,nan\n", ", line 2: expected a finite float32 as target, got nan"),
        (b'1,2,x\n3,"4,y\n', "line 2"),
        (b'1,2,x\n3,"4"5,y\n', ", line 2: expected well-formed fields"),
        (b"1,2,x\n3,\0,y\n", "line 2"),
        (b"1,2,\xff\n", "UTF-8 text"),
        (b"1,2," + b"x" * 200_000 + b"\n", ", line 1: expected well-formed fields"),
    ],
)
def test_table_bad_content(tmp_path, text, words):
    with pytest.raises(FileError, match=re.escape(words)) as caught:
        read(write(tmp_path, text, "bad.csv"))
    assert "bad.csv" in caught.value.where


def test_table_line_numbers_count_lines_not_rows(tmp_path):
    path = write(tmp_path, 'v,k\n1,"two\nlines"\n\nx,b\n')
    with pytest.raises(FileError, match="line 5"):
        read(path)


numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
labels = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5).filter(
    lambda s: s == s.strip() and s
)


@fuzz
@given(st.lists(st.tuples(numbers, numbers, labels.map(lambda s: f"k{s}")), min_size=1, max_size=8))
def test_table_of_any_numbers_and_names_comes_back(tmp_path, rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    records = read_records(write(tmp_path, out.getvalue()))
    np.testing.assert_array_equal(records.x, np.array([row[:2] for row in rows], dtype=np.float32))
    assert [records.classes[k] for k in records.y] == [row[2] for row in rows]


@fuzz
@given(st.data())
def test_table_damaged_anywhere(tmp_path, draw):
    content = bytearray(b'length,width,kind\n5.1,3.5,iris\n4.9,3,"ro,se"\n-1e3,.5,iris\n')
    del content[draw.draw(st.integers(0, len(content))) :]
    for _ in range(draw.draw(st.integers(0, 4))):
        if content:
            content[draw.draw(st.integers(0, len(content) - 1))] = draw.draw(
                st.sampled_from(b'0,"\n\r\0\xff_x-e ')
            )
    path = write(tmp_path, bytes(content))
    try:
        x, y = read(path)
    except FileError as error:
        if str(path) not in error.where:
            raise
    else:
        assert x.shape[0] == len(y) > 0
        next(iter(Batches(x, y)))


# -- svmlight -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["a.svm", "a.svmlight", "a.libsvm"])
def test_svmlight_as_scikit_learn_writes_it(tmp_path, zero_based, name):
    sklearn = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(0)
    dense = rng.random((8, 6)) * (rng.random((8, 6)) < 0.5)
    dense[0] = (
        1.0  # the first and the last feature are there: the file says how wide it is and where it starts
    )
    x = sp.csr_array(dense.astype(np.float32))
    labels = np.array([3, -1, 3, 0, 0, 3, -1, 0])
    sklearn.dump_svmlight_file(x, labels, str(tmp_path / name), zero_based=zero_based, comment="by hand")
    records = read_records(tmp_path / name)
    np.testing.assert_array_equal(records.x.toarray(), x.toarray())
    assert records.classes == ("-1", "0", "3")
    assert [int(records.classes[k]) for k in records.y] == labels.tolist()
    wider, _ = read(tmp_path / name, features=9)
    np.testing.assert_array_equal(wider.toarray()[:, :6], x.toarray())
    assert wider.shape == (8, 9)


def test_svmlight_of_many_labels_as_scikit_learn_writes_it(tmp_path):
    sklearn = pytest.importorskip("sklearn.datasets")
    x = np.eye(4)
    y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]])
    sklearn.dump_svmlight_file(x, y, str(tmp_path / "a.svm"), multilabel=True, zero_based=False)
    records = read_records(tmp_path / "a.svm")
    assert records.y.toarray().tolist() == y.tolist()
    assert records.classes == ("0", "1", "2")
    assert records.loss == "binary_cross_entropy"
    wider = read_records(tmp_path / "a.svm", classes=("9", "2", "1", "0"))
    assert wider.y.toarray().tolist() == [[0, *row[::-1]] for row in y.tolist()]
    with pytest.raises(FileError, match="line 1: expected one of the 2 classes, got '2'"):
        read(tmp_path / "a.svm", classes=("0", "1"))


def test_svmlight_details(tmp_path):
    text = "# a comment\n\n1 qid:3 2:0.5 1:1 # another\n0\n1 4:-2e1\n"
    x, y = read(write(tmp_path, text, "a.svm"))
    assert x.toarray().tolist() == [[1, 0.5, 0, 0], [0, 0, 0, 0], [0, 0, 0, -20]]
    assert y.tolist() == [1, 0, 1]
    numbers = read_records(write(tmp_path, "0.5 1:1\n-2 1:2\n", "b.svm"))
    assert numbers.loss == "mse"
    assert numbers.y.tolist() == [0.5, -2]
    # Samples alone: the labels are placeholders.
    x, y = read(write(tmp_path, "0 1:1\n0 2:2\n", "c.svm"), target=False, classes=("a", "b"), features=2)
    assert x.toarray().tolist() == [[1, 0], [0, 2]]
    assert y is None
    with pytest.raises(ArgumentError, match="labels come first"):
        read(tmp_path / "c.svm", target="y")


def test_svmlight_dimension_is_free(tmp_path):
    x, _ = read(write(tmp_path, f"1 1:1 {2**50}:2\n0 3:1\n", "a.svm"))
    assert x.shape == (2, 2**50)
    assert x.nnz == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "lines of label index:value ..., got none"),
        (b"# only\n", "lines of label index:value ..., got none"),
        (b"1\n0\n", "at least one index:value, got none"),
        (b"1 1:2\n3 2 159\n", ", line 2: expected index:value pairs, got '2'"),
        (b"1 1:2\n0 a:1\n", ", line 2: expected index:value pairs, got 'a:1'"),
        (b"1 1:2\n0 2:b\n", ", line 2: expected index:value pairs, got '2:b'"),
        (b"1 1:2\n0 2:\n", ", line 2: expected index:value pairs, got '2:'"),
        (b"1 1:2\n0 1_0:1\n", ", line 2: expected index:value pairs, got '1_0:1'"),
        (b"1 1:2\n0 -1:1\n", ", line 2: expected index:value pairs, got '-1:1'"),
        (b"1 1:2\n0 99999999999999999999:1\n", ", line 2: expected index:value pairs"),
        (b"1 1:2\n0 2:1 1:2 2:3\n", ", line 2: expected each index once, got 2 twice"),
        (b"1 1:2\n0 2:nan\n", ", line 2: expected finite float32 numbers, got nan"),
        (b"1 1:2\n0 2:1e39\n", ", line 2: expected finite float32 numbers, got 1e+39"),
        (b"1 1:2\n 2:1\n", ", line 2: expected a number as label, got none"),
        (b"1 1:2\ncat 2:1\n", ", line 2: expected a number as label, got 'cat'"),
        (b"1 1:2\nnan 2:1\n", ", line 2: expected a finite float32 as target, got nan"),
        (b"1,2 1:2\n1,x 2:1\n", ", line 2: expected integer labels joined by commas, got '1,x'"),
        (b"1,2 1:2\n1.5 2:1\n", ", line 2: expected integer labels joined by commas, got '1.5'"),
        (b"1,2 1:2\n1, 2:1\n", ", line 2: expected integer labels joined by commas, got '1,'"),
        (b"1 1:2\n\n2,1,2 2:1\n", ", line 3: expected each label once, got [1, 2, 2]"),
        (b"1 1:2\n\xff\n", "text, got"),
    ],
)
def test_svmlight_bad_content(tmp_path, text, words):
    with pytest.raises(FileError, match=re.escape(words)) as caught:
        read(write(tmp_path, text, "bad.svm"))
    assert "bad.svm" in caught.value.where


def test_svmlight_beyond_the_features(tmp_path):
    path = write(tmp_path, "1 1:1\n0 3:1\n", "a.svm")
    with pytest.raises(FileError, match="line 2: expected 2 features, got index 3"):
        read(path, features=2)
    assert read(path, features=3)[0].shape == (2, 3)


@fuzz
@given(st.data())
def test_svmlight_damaged_anywhere(tmp_path, draw):
    content = bytearray(b"1 1:0.5 3:2\n-1 2:1 # comment\n1,2 4:1\n")
    del content[draw.draw(st.integers(0, len(content))) :]
    for _ in range(draw.draw(st.integers(0, 4))):
        if content:
            content[draw.draw(st.integers(0, len(content) - 1))] = draw.draw(
                st.sampled_from(b"0:,\n\0\xff_x-e# ")
            )
    path = write(tmp_path, bytes(content), "a.svm")
    try:
        x, y = read(path)
    except FileError as error:
        if str(path) not in error.where:
            raise
    else:
        assert x.shape[0] == y.shape[0] > 0
        x.check_format(full_check=True)
