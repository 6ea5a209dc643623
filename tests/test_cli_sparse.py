"""The command on sparse data: nothing is made dense, and only features that occur get edges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gbnn
from gbnn.cli import main
from gbnn.errors import ArgumentError
from gbnn.layers import KWinners, LeakyRelu, Linear, Threshold, activation


def write_svm(path: Path, x: sp.csr_array, y: list[str], base: int) -> None:
    lines = []
    for row, label in enumerate(y):
        span = slice(x.indptr[row], x.indptr[row + 1])
        pairs = zip(x.indices[span] + base, x.data[span], strict=True)
        lines.append(" ".join([label, *(f"{i}:{v:.4g}" for i, v in pairs)]))
    path.write_text("\n".join(lines) + "\n")


def words(rows: int = 300, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of which a few features, far apart, tell the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    columns = np.sort(np.stack([1000 * (y + 1), rng.integers(1, 900, rows)], axis=1), axis=1)
    parts = np.ones(2 * rows, np.float32), columns.ravel(), np.arange(rows + 1) * 2
    return sp.csr_array(parts, shape=(rows, 5000)), y


@pytest.mark.parametrize("activation", ["relu", "kwinners:8", "threshold:0.01"])
def test_train_and_predict(activation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = words()
    file, out = tmp_path / "words.svm", tmp_path / "m.safetensors"
    write_svm(file, x, [str(k) for k in y], base=1)
    command = ["train", "--data", str(file), "--hidden", "64", "--nnz", "6000", "--activation", activation]
    command += ["--epochs", "30", "--batch-size", "32", "--learning-rate", "0.02", "--quiet", "--json"]
    assert main([*command, "--out", str(out)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["test"]["accuracy"] > 0.9
    assert result["nnz"] == 6000
    model = gbnn.load(out)
    first = model[0]
    assert isinstance(first, Linear)
    assert set(first.weights.sources.tolist()) <= set(x.indices.tolist())
    assert main(["predict", str(out), "--data", str(file), "--top", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert np.mean([int(row[0]) == k for row, k in zip(said["classes"], y, strict=True)]) > 0.9


def test_edges_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = words()
    write_svm(tmp_path / "words.svm", x, [str(k) for k in y], base=1)
    command = ["train", "--data", str(tmp_path / "words.svm"), "--hidden", "32", "--nnz", "600", "96"]
    command += ["--rewire", "grow-on-demand", "--rewire-budget", "900", "--rewire-every", "5"]
    command += ["--epochs", "20", "--batch-size", "32", "--learning-rate", "0.02", "--quiet", "--json"]
    assert main(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert 696 < result["nnz"] <= 996
    assert result["test"]["accuracy"] > 0.9


def test_a_test_file_is_read_from_the_base_of_the_training_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its smallest index is 1, which says nothing of its base."""
    x, y = words()
    train, later, out = tmp_path / "a.svm", tmp_path / "b.svm", tmp_path / "m.safetensors"
    zero = sp.csr_array((x.data, np.where(x.indices < 900, 0, x.indices), x.indptr), shape=x.shape)
    write_svm(train, zero, [str(k) for k in y], base=0)  # there is a 0: it counts from 0
    write_svm(later, x, [str(k) for k in y], base=0)
    command = ["train", "--data", str(train), "--hidden", "32", "--epochs", "30", "--batch-size", "32"]
    assert main([*command, "--learning-rate", "0.02", "--quiet", "--json", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(out), "--data", str(later), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9


def test_predict_the_best_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = words()
    labels = sp.csr_array((np.ones(600), np.stack([y, 3 + y % 2], axis=1).ravel(), np.arange(301) * 2))
    out = tmp_path / "m.safetensors"
    sp.save_npz(tmp_path / "X.npz", x)
    sp.save_npz(tmp_path / "Y.npz", labels)
    pair = f"{tmp_path / 'X.npz'},{tmp_path / 'Y.npz'}"
    command = ["train", "--data", pair, "--hidden", "64", "--epochs", "40", "--batch-size", "32"]
    assert main([*command, "--learning-rate", "0.02", "--quiet", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["predict", str(out), "--data", str(tmp_path / "X.npz"), "--top", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    right = [set(map(int, row)) == {k, 3 + k % 2} for row, k in zip(said["labels"], y.tolist(), strict=True)]
    assert np.mean(right) > 0.9
    assert all(a >= b for a, b in said["probabilities"])
    assert main(["predict", str(out), "--data", str(tmp_path / "X.npz"), "--top", "2"]) == 0
    first = capsys.readouterr().out.splitlines()[0].split(",")
    assert first[::2] == said["labels"][0]


def test_a_folder_is_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = words()
    gbnn.data.save_csr(tmp_path / "folder", x, y)
    command = ["train", "--data", str(tmp_path / "folder"), "--hidden", "32", "--epochs", "30"]
    assert main([*command, "--batch-size", "32", "--learning-rate", "0.02", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["test"]["accuracy"] > 0.9


def test_activations_with_a_number() -> None:
    made = activation("kwinners:5"), activation("threshold:0.5"), activation("leaky_relu:0.2")
    assert [type(layer) for layer in made] == [KWinners, Threshold, LeakyRelu]
    assert (made[0].k, made[1].above, made[2].slope) == (5, 0.5, 0.2)
    for wrong in ("kwinners", "kwinners:", "kwinners:0", "kwinners:1.5", "threshold:x", "relu:3", "none:1"):
        with pytest.raises(ArgumentError, match="activation"):
            activation(wrong)
