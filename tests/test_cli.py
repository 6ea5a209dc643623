"""The command, as a user types it: in this process where that is enough, in a real one where it is not."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gbnn
from gbnn import training
from gbnn.cli import main

pytest.importorskip("sklearn")

TRAIN = ["train", "--data", "digits", "--hidden", "60", "--density", "0.2", "--epochs", "2", "--quiet"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "digits.safetensors"
    assert main([*TRAIN, "--epochs", "20", "--learning-rate", "0.01", "--out", str(path)]) == 0
    return path


def test_train_prints_a_table_and_saves_the_model_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.safetensors"
    assert main([*TRAIN, "--rewire", "set", "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["widths"] == [64, 60, 10]
    assert result["nnz"] == round(0.2 * 64 * 60) + 600  # the head is dense
    assert result["peak_bytes"] > 1e6
    assert result["edges_per_second"] > 0
    assert [row["grown"] > 0 for row in result["history"]] == [True, False]
    digits = gbnn.data.digits()
    scores = training.evaluate(gbnn.load(out), digits.test)
    assert scores == pytest.approx(result["test"])
    assert main([*TRAIN, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    for word in ("accuracy", "nnz", "density", "widths", "peak memory", "time per epoch", "edges per second"):
        assert word in text


def test_train_is_reproducible(capsys: pytest.CaptureFixture[str]) -> None:
    losses = []
    for _ in range(2):
        assert main([*TRAIN, "--rewire", "rigl", "--rewire-every", "5", "--json"]) == 0
        losses.append([row["loss"] for row in json.loads(capsys.readouterr().out)["history"]])
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    "more",
    [
        ["--nnz", "900"],
        ["--nnz", "500", "400"],
        ["--optimizer", "sgd", "--schedule", "one_cycle"],
        ["--activation", "gelu", "--dropout", "0.1", "--normalize", "batch"],
        ["--validation", "0.2", "--loss", "hinge"],
        ["--hidden"],
        ["--allocation", "uniform", "--weight-decay", "0.01", "--threads", "1"],
    ],
)
def test_train_takes_every_option(more: list[str]) -> None:
    sizes = [] if "--nnz" not in more else ["--nnz"]
    base = [a for a in TRAIN if not (sizes and a in ("--density", "0.2"))]
    before = gbnn.storage.threads()
    try:
        assert main([*base, "--epochs", "1", *more]) == 0
    finally:
        gbnn.storage.set_threads(before)


def test_evaluate_predict_and_info_use_the_file(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(model), "--data", "digits", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["accuracy"] > 0.9
    assert scores["rows"] == 359
    assert main(["predict", str(model), "--data", "digits", "--top", "2"]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    digits = gbnn.data.digits()
    assert [int(row[0]) for row in rows] == training.predict(gbnn.load(model), digits.x_test).tolist()
    assert all(float(row[1]) >= float(row[3]) for row in rows)
    assert main(["info", str(model), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["metadata"]["data"] == "digits"
    assert about["nnz"] == gbnn.load(model).nnz
    assert main(["info", str(model)]) == 0
    assert "64 x 60" in capsys.readouterr().out


def test_files_are_trained_on_and_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 5)).round(3)
    names = np.where(x[:, 0] > 0, "up", "down")
    lines = [",".join([*map(str, row), name]) for row, name in zip(x, names, strict=True)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["a,b,c,d,e,way", *lines]) + "\n")
    out, told = tmp_path / "m.safetensors", tmp_path / "p.csv"
    train = ["train", "--data", str(table), "--hidden", "40", "--epochs", "20", "--batch-size", "16"]
    assert main([*train, "--density", "0.5", "--learning-rate", "0.01", "--quiet", "--out", str(out)]) == 0
    capsys.readouterr()
    # Rows without a target column, in another file: the model knows its number of features and class names.
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
    assert main(["predict", str(out), "--data", str(bare), "--out", str(told)]) == 0
    said = [row[0] for row in csv.reader(told.read_text().splitlines())]
    assert len(said) == 200
    assert np.mean(np.array(said) == names) > 0.85
    assert main(["evaluate", str(out), "--data", str(table)]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_regression_and_labels_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 6)).astype(np.float32)
    for name, y in (("numbers", x[:, :1] * 2.5), ("labels", (x[:, :3] > 0).astype(float))):
        data, out = tmp_path / f"{name}.npz", tmp_path / f"{name}.safetensors"
        np.savez(data, x=x, y=y)
        train = [
            "train",
            "--data",
            str(data),
            "--hidden",
            "20",
            "--density",
            "0.5",
            "--epochs",
            "2",
            "--quiet",
        ]
        assert main([*train, "--out", str(out)]) == 0
        capsys.readouterr()
        assert main(["predict", str(out), "--data", str(data), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert len(result["outputs" if name == "numbers" else "labels"]) == 80


def test_datasets_lists_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in gbnn.data.DATASETS)


BAD = [
    ["train", "--data", "nowhere"],
    ["train", "--data", "digits", "--density", "0"],
    ["train", "--data", "digits", "--density", "1.5"],
    ["train", "--data", "digits", "--nnz", "10000000"],
    ["train", "--data", "digits", "--nnz", "1", "2", "3"],
    ["train", "--data", "digits", "--hidden", "0"],
    ["train", "--data", "digits", "--epochs", "0"],
    ["train", "--data", "digits", "--batch-size", "-3"],
    ["train", "--data", "digits", "--activation", "relo"],
    ["train", "--data", "digits", "--allocation", "fair"],
    ["train", "--data", "digits", "--optimizer", "adamn"],
    ["train", "--data", "digits", "--schedule", "linear"],
    ["train", "--data", "digits", "--rewire", "setl"],
    ["train", "--data", "digits", "--rewire", "set", "--rewire-fraction", "2"],
    ["train", "--data", "digits", "--loss", "l7"],
    ["train", "--data", "digits", "--normalize", "group"],
    ["train", "--data", "digits", "--dropout", "1"],
    ["train", "--data", "digits", "--validation", "1"],
    ["train", "--data", "digits", "--seed", "-1"],
    ["train", "--data", "digits", "--log", "log.txt"],
    ["train", "--data", "digits", "--out", "no/such/folder/m.safetensors"],
    ["train", "--data", "digits", "--threads", "0"],
    ["evaluate", "missing.safetensors", "--data", "digits"],
    ["predict", __file__, "--data", "digits"],
    ["info", "missing.safetensors"],
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_errors_are_one_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("gbnn: error: ")
    assert streams.err.count("\n") == 1
    assert "expected" in streams.err


@pytest.mark.parametrize(
    "arguments", [[], ["tarin"], ["train"], ["train", "--data", "digits", "--epochs", "x"]]
)
def test_unknown_words_are_one_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@given(
    st.lists(
        st.sampled_from(["train", "info", "--data", "digits", "--hidden", "3", "-1", "", "é", "--nnz"]),
        max_size=6,
    )
)
@settings(max_examples=40, deadline=None)
def test_any_words_give_an_answer_or_an_error(words: list[str]) -> None:
    try:
        code = main([*words, "--epochs", "1"] if "train" in words else words)
    except SystemExit as stop:
        code = stop.code
    assert code in (0, 2)


def test_as_a_process(model: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "gbnn", "evaluate", str(model), "--data", "digits"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "accuracy" in run.stdout
    run = subprocess.run(
        [sys.executable, "-m", "gbnn", "evaluate", "nothing", "--data", "digits"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "Traceback" not in run.stderr


def test_demo_trains_saves_reloads_and_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["sparse"]["nnz"] == result["dense"]["nnz"]
    assert result["sparse"]["widths"][1] == 10 * result["dense"]["widths"][1]
    assert result["reloaded_equals_saved"] is True
    assert result["sparse"]["moved_edges"] > 0
    assert result["sparse"]["accuracy"] > result["dense"]["accuracy"] > 0.85


def test_a_table_of_any_scale_is_learned_and_its_scale_travels_with_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal([1e4, 0.0, -3.0], [1e3, 1e-3, 50.0], (300, 3))
    y = 1e5 + 40 * (x[:, 0] - 1e4) / 1e3 + 30 * np.tanh(x[:, 2] / 50)
    data, out = tmp_path / "t.npz", tmp_path / "m.safetensors"
    np.savez(data, x=x, y=y)
    train = ["train", "--data", str(data), "--hidden", "50", "--density", "0.5", "--epochs", "30", "--json"]
    train += ["--batch-size", "16", "--quiet", "--out", str(out)]
    assert main(train) == 0
    assert json.loads(capsys.readouterr().out)["test"]["r2"] > 0.9
    guesses = training.predict(gbnn.load(out), x, loss=gbnn.losses.mse)
    assert np.corrcoef(guesses[:, 0], y)[0, 1] > 0.95
    assert main([*train, "--no-standardize"]) in (0, 2)  # as it comes: it learns nothing, or diverges
    out_text = capsys.readouterr().out
    assert not out_text or json.loads(out_text)["test"]["r2"] < 0.5
