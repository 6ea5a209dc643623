"""Short versions of the reproductions in benchmarks/reproduce: slow, and skipped where there is no data."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from gbnn import data
from gbnn.errors import FileError

SCRIPTS = Path(__file__).resolve().parents[1] / "benchmarks" / "reproduce"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fashion():
    try:
        return data.fashion_mnist(download=False)
    except FileError as error:
        pytest.skip(str(error))


def run(script, *arguments):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(path):
    return {row["method"]: row for row in map(json.loads, path.read_text().splitlines())}


def test_lenet(fashion, tmp_path):
    output = tmp_path / "lenet.jsonl"
    arguments = ["--data", "fashion-mnist", "--epochs", 3, "--output", output, "--sparsities", 0.9]
    methods = ["static", "set", "rigl", "dsr", "sparse-momentum", "deep-r"]
    run("lenet.py", *arguments, "--methods", *methods)
    found = rows(output)
    assert set(found) == set(methods)
    for row in found.values():
        assert sum(row["edges"]) == sum(row["edges_at_start"]) == 26_620
        assert 0.75 < row["accuracy"] < 0.92, row  # 0.85 to 0.87 in three epochs; a tenth by guessing
    assert found["static"]["edges"] == [23_520, 3_000, 100]
    assert found["sparse-momentum"]["edges"] != [23_520, 3_000, 100]  # edges move between layers
    table = run("table.py", output)
    assert all(method in table for method in methods)
    assert "0 runs to do, 6 done before" in run("lenet.py", *arguments, "--methods", *methods)


def test_allocation_and_normalisation(fashion, tmp_path):
    output = tmp_path / "lenet.jsonl"
    arguments = ["--data", "fashion-mnist", "--epochs", 1, "--output", output, "--sparsities", 0.99]
    run("lenet.py", *arguments, "--methods", "set", "--allocation", "erdos_renyi", "--normalize", "batch")
    row = rows(output)["set"]
    assert row["edges"] == [1810, 668, 184]
    assert row["accuracy"] > 0.5


def test_wide(fashion, tmp_path):
    output = tmp_path / "wide.jsonl"
    methods = ["set", "rigl-each-epoch"]
    run("wide.py", "--data", "fashion-mnist", "--epochs", 2, "--output", output, "--methods", *methods)
    found = rows(output)
    for method in methods:
        assert sum(found[method]["edges"]) == 12_293 + 2 * 24_586 + 15_680
        assert 0.70 < found[method]["accuracy"] < 0.92


def test_update_cost():
    printed = run(
        "update_cost.py", "--width", 500, "--rounds", 2, "--recipes", "set_", "rigl", "--threads", 1
    )
    names = [line.split("|")[1].strip() for line in printed.splitlines() if line.startswith("|")]
    assert names == ["recipe", "---", "dense gradient + top-k", "set_", "rigl"]


def test_a_run_that_fails_is_told(fashion, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    command = [
        sys.executable,
        str(SCRIPTS / "lenet.py"),
        "--epochs",
        "1",
        "--output",
        str(tmp_path / "o.jsonl"),
    ]
    command += ["--methods", "set", "--sparsities", "0.9", "--mnist", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "1 of 1 runs failed" in done.stderr
    assert "four IDX files of mnist" in done.stderr


def test_standardised(fashion, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from data import load

    split = load("fashion-mnist")
    assert split.x.dtype == np.float32
    assert abs(split.x.mean()) < 1e-3
    assert abs(split.x.std() - 1) < 1e-3


def test_an_archive_of_other_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import data as reproduction

    def pack(folder):
        (folder / "train-images-idx3-ubyte").write_bytes(b"no images")
        with tarfile.open(folder / "package.tgz", "w:gz") as archive:
            archive.add(folder / "train-images-idx3-ubyte", "package/data/train-images-idx3-ubyte")
        return folder / "package.tgz"

    with pytest.raises(FileError, match="the four files of MNIST"):
        reproduction._unpack(pack, tmp_path / "mnist")
    assert list(tmp_path.iterdir()) == []  # nothing is left behind
