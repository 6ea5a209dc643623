"""The command under odd files, odd options, odd outputs: one line that says what is wrong, nothing harmed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gbnn
from gbnn import models
from gbnn.cli import main

FAST = ["--hidden", "8", "--density", "0.5", "--epochs", "1", "--quiet"]
GBNN = [sys.executable, "-m", "gbnn"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table of two classes and one of numbers."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).standard_normal((40, 4)).round(3)
    table("names.csv", x, np.where(x[:, 0] > 0, "up", "down"))
    table("numbers.csv", x, x[:, 0] * 2.5)
    table("whole.csv", x, (x[:, 0] * 1000).astype(int))
    Path("bare.csv").write_text("1,2,3,4\n5,6,7,8\n")
    return tmp_path


def table(name: str, x: Any, y: Any) -> None:
    lines = [",".join([*map(str, row), str(value)]) for row, value in zip(x, y, strict=True)]
    Path(name).write_text("\n".join(lines) + "\n")


def trained(data: str, *more: str) -> str:
    """Train on a file and return the name of the model's file."""
    out = f"{Path(data).stem}.safetensors"
    assert main(["train", "--data", data, *FAST, "--out", out, *more]) == 0
    return out


def refused(capsys: Capture, *arguments: str) -> str:
    """Run what must fail with one line, and return it."""
    capsys.readouterr()
    try:
        code: Any = main(arguments)
    except SystemExit as stop:
        code = stop.code
    streams = capsys.readouterr()
    assert code == 2
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    return streams.err


def answer(capsys: Capture, *arguments: str) -> Any:
    """Run a command with --json and return its one valid JSON object."""

    def foreign(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=foreign)


# -- What is written -----------------------------------------------------------------------------------------


def test_inputs_are_never_written_over(here: Path, capsys: Capture) -> None:
    model = trained("names.csv")
    Path("link.csv").symlink_to("names.csv")
    np.savez("x.npz", x=np.eye(4))
    np.savez("y.npz", y=np.arange(4))
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    train = ["train", "--data", "names.csv", *FAST]
    assert "--out" in refused(capsys, *train, "--out", "names.csv")
    assert "--out" in refused(capsys, *train, "--out", "./link.csv")
    assert "--log" in refused(capsys, *train, "--log", str(here / "names.csv"))
    assert "--log" in refused(capsys, *train, "--out", "a.csv", "--log", "a.csv")
    assert "--out" in refused(capsys, "train", "--data", "x.npz,y.npz", *FAST, "--out", "y.npz")
    predict = ["predict", model, "--data", "names.csv"]
    assert "--out" in refused(capsys, *predict, "--out", model)
    assert "--out" in refused(capsys, *predict, "--out", "link.csv")
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--out", ""),
        ("--out", "."),
        ("--out", "a" * 300),
        ("--out", "names.csv/m.safetensors"),
        ("--out", "no/m.safetensors"),
        ("--out", "pipe"),
        ("--log", ""),
        ("--log", "no/log.csv"),
        ("--log", "folder.csv"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_training(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, option: str, place: str
) -> None:
    os.mkfifo("pipe")
    Path("folder.csv").mkdir()
    monkeypatch.setattr("gbnn.training.fit", lambda *_, **__: pytest.fail("it trained"))
    refused(capsys, "train", "--data", "names.csv", *FAST, option, place)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_predictions_are_written_whole_or_not_at_all(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained("names.csv")
    Path("told.csv").write_text("before")
    names = sorted(os.listdir())

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        error = refused(capsys, "predict", model, "--data", "names.csv", "--out", "told.csv")
    assert "No space left" in error
    assert Path("told.csv").read_text() == "before"
    assert sorted(os.listdir()) == names
    assert main(["predict", model, "--data", "names.csv", "--out", "told.csv"]) == 0
    assert len(Path("told.csv").read_text().splitlines()) == 40


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GBNN, *arguments], stderr=subprocess.PIPE, text=True, check=False, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_under_standard_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        run = process("datasets", stdout=full)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "No space left" in run.stderr


def test_streams_may_be_closed(here: Path) -> None:
    shell = f"{sys.executable} -m gbnn train --data names.csv {' '.join(FAST[:-1])} --out m.safetensors"
    for streams in (">&-", "2>&-", ">&- 2>&- <&-"):
        run = subprocess.run(["sh", "-c", f"{shell} {streams}"], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stderr == ""
    run = subprocess.run(["sh", "-c", f"{shell} --epochs 0 2>&-"], capture_output=True, check=False)
    assert (run.returncode, run.stdout) == (2, b"")


def test_text_that_the_terminal_cannot_show_is_escaped(here: Path) -> None:
    x = np.eye(4)
    table("names.csv", x, ["rød", "blå"] * 2)
    trained("names.csv")
    run = process(
        "predict",
        "names.safetensors",
        "--data",
        "names.csv",
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert run.returncode == 0, run.stderr
    assert {line.split(",")[0] for line in run.stdout.splitlines()} <= {"r\\xf8d", "bl\\xe5"}


def test_names_that_are_no_text_are_escaped_in_files(here: Path) -> None:
    np.savez("odd.npz", x=np.eye(4), y=np.array(["a\ud800", "b"] * 2))
    model = trained("odd.npz")
    assert main(["predict", model, "--data", "odd.npz", "--out", "told.csv"]) == 0
    assert len(Path("told.csv").read_text(encoding="utf-8").splitlines()) == 4


def test_ctrl_c_ends_training_with_one_line(here: Path) -> None:
    arguments = ["train", "--data", "names.csv", *FAST, "--epochs", "1000000", "--out", "m.safetensors"]
    # A shell starts what runs behind it with interrupts ignored, and a child inherits that.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        run = subprocess.Popen(
            [*GBNN, *arguments, "--log", "log.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    out = ""
    try:
        while run.poll() is None and not (Path("log.csv").exists() and Path("log.csv").stat().st_size):
            time.sleep(0.05)
        # Python itself loses an interrupt that comes while it frees an object, and says so.
        for _ in range(3):
            run.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = run.communicate(timeout=20)
                break
    finally:
        run.kill()
        run.communicate()
    assert (run.returncode, out) == (130, "")
    assert err.endswith("gbnn: interrupted\n")
    assert err.count("\n") == 1 or err.startswith("Exception ignored")
    assert not [name for name in os.listdir() if "safetensors" in name or name.startswith(".")]


# -- What is printed -----------------------------------------------------------------------------------------


def test_json_has_null_where_a_number_is_not_finite(here: Path, capsys: Capture) -> None:
    table("two.csv", np.eye(2), [0.5, 1.5])  # one row to test with: r2 says nothing
    result = answer(capsys, "train", "--data", "two.csv", *FAST)
    assert result["test"]["r2"] is None
    model = models.mlp([4, 8, 2], density=0.5, seed=0)
    gbnn.save("noted.safetensors", model, metadata={"score": float("nan")})
    assert answer(capsys, "info", "noted.safetensors")["metadata"] == {"score": None}
    for parameter in model.parameters().values():
        parameter.assign(1e38) if isinstance(parameter, gbnn.Weights) else parameter.fill(1e38)
    gbnn.save("large.safetensors", model)
    assert None in answer(capsys, "predict", "large.safetensors", "--data", "bare.csv")["probabilities"][0]


# -- Data and models that do not fit -------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["--5", "²", "", "9" * 5000, "no"])
def test_no_such_target_column(here: Path, capsys: Capture, target: str) -> None:
    assert "target" in refused(capsys, "train", "--data", "names.csv", f"--target={target}")


@pytest.mark.parametrize(
    ("data", "loss"),
    [
        ("names.csv", "mse"),
        ("names.csv", "binary_cross_entropy"),
        ("names.csv", ""),
        ("numbers.csv", "hinge"),
        ("numbers.csv", "cross_entropy"),
        ("labels.npz", "cross_entropy"),
        ("labels.npz", "mse"),
    ],
)
def test_a_loss_that_does_not_suit_the_targets_is_named(
    here: Path, capsys: Capture, data: str, loss: str
) -> None:
    y = sp.eye_array(4, format="csr")
    parts = {"y_data": y.data, "y_indices": y.indices, "y_indptr": y.indptr, "y_shape": y.shape}
    np.savez("labels.npz", x=np.eye(4), **parts)
    error = refused(capsys, "train", "--data", data, *FAST, "--loss", loss)
    assert "--loss" in error or "number" in error


def test_integers_are_numbers_where_the_loss_says_so(here: Path, capsys: Capture) -> None:
    assert answer(capsys, "train", "--data", "whole.csv", *FAST, "--loss", "mse")["widths"] == [4, 8, 1]
    # And in evaluation, whatever the file they stand in looks like.
    model = trained("numbers.csv")
    table("a.csv", np.eye(4), [100, 200, 300, 900])
    table("b.csv", np.eye(4), [100.0, 200.0, 300.0, 900.0])
    losses = [answer(capsys, "evaluate", model, "--data", name)["loss"] for name in ("a.csv", "b.csv")]
    assert losses[0] == losses[1]
    assert "number" in refused(capsys, "evaluate", model, "--data", "names.csv")


def test_density_that_leaves_a_layer_without_edges(here: Path, capsys: Capture) -> None:
    train = ["train", "--data", "names.csv", *FAST, "--hidden", "8", "8", "--density", "0.001"]
    result = answer(capsys, *train)
    assert result["nnz"] == 16  # the head
    assert result["density"] == pytest.approx(16 / (4 * 8 + 8 * 8 + 8 * 2))


def test_rows_to_predict_need_no_true_labels(here: Path, capsys: Capture) -> None:
    model = trained("names.csv")
    table("unknown.csv", np.eye(4), ["?"] * 4)
    Path("unknown.svm").write_text("0 1:1 4:1\n0 2:3\n")
    expected = answer(capsys, "predict", model, "--data", "unknown.csv")["classes"]
    np.save("eye.npy", np.eye(4))
    assert answer(capsys, "predict", model, "--data", "eye.npy")["classes"] == expected
    assert len(answer(capsys, "predict", model, "--data", "unknown.svm")["classes"]) == 2
    assert "one of the 2 classes" in refused(capsys, "evaluate", model, "--data", "unknown.csv")
    assert "targets" in refused(capsys, "evaluate", model, "--data", "bare.csv")


def test_the_test_part_of_a_file_is_what_is_measured(here: Path, capsys: Capture) -> None:
    x, y = np.eye(4), np.array([0, 1, 0, 1])
    np.savez("parts.npz", x_train=x, y_train=y, x_test=x[:3], y_test=y[:3])
    result = answer(capsys, "train", "--data", "parts.npz", *FAST, "--out", "m.safetensors")
    again = answer(capsys, "evaluate", "m.safetensors", "--data", "parts.npz")
    assert again["rows"] == 3
    assert again["loss"] == pytest.approx(result["test"]["loss"])
    assert len(answer(capsys, "predict", "m.safetensors", "--data", "parts.npz")["classes"]) == 3


def test_digits_are_split_as_for_training(here: Path, capsys: Capture) -> None:
    pytest.importorskip("sklearn")
    train = ["train", "--data", "digits", *FAST, "--seed", "5", "--out", "m.safetensors"]
    scores = answer(capsys, *train)["test"]
    again = answer(capsys, "evaluate", "m.safetensors", "--data", "digits")
    assert {name: again[name] for name in scores} == pytest.approx(scores)
    assert "target" in refused(capsys, "evaluate", "m.safetensors", "--data", "digits", "--target", "x")
    assert "folder" in refused(capsys, "evaluate", "m.safetensors", "--data", "bare.csv", "--folder", ".")
    # The same width and number of classes, but not the same classes.
    gbnn.save("m.safetensors", gbnn.load("m.safetensors"), metadata={"classes": [*"abcdefghij"]})
    assert "classes" in refused(capsys, "evaluate", "m.safetensors", "--data", "digits")


def test_models_saved_from_python_without_metadata(here: Path, capsys: Capture) -> None:
    gbnn.save("three.safetensors", models.mlp([4, 8, 3], density=0.5, seed=0))
    gbnn.save("one.safetensors", models.mlp([4, 8, 1], density=0.5, seed=0))
    assert len(answer(capsys, "predict", "three.safetensors", "--data", "bare.csv")["classes"]) == 2
    # Labels are class numbers, also where the file lacks some; names in order where it has as many.
    table("some.csv", np.eye(4), [2, 1, 2, 1])
    table("all.csv", np.eye(4), [2, 1, 2, 0])
    table("words.csv", np.eye(4), ["c", "b", "c", "a"])
    scores = [answer(capsys, "evaluate", "three.safetensors", "--data", f"{n}.csv") for n in ("all", "words")]
    assert scores[0]["loss"] == scores[1]["loss"]
    y = [2, 1, 2, 1]
    loss = gbnn.training.evaluate(gbnn.load("three.safetensors"), (np.eye(4), np.array(y)))["loss"]
    assert answer(capsys, "evaluate", "three.safetensors", "--data", "some.csv")["loss"] == loss
    assert "3 classes" in refused(capsys, "evaluate", "three.safetensors", "--data", "names.csv")
    outputs = answer(capsys, "predict", "one.safetensors", "--data", "bare.csv", "--loss", "mse")["outputs"]
    assert np.shape(outputs) == (2, 1)
    assert "r2" in answer(capsys, "evaluate", "one.safetensors", "--data", "numbers.csv", "--loss", "mse")


@pytest.mark.parametrize(
    "about",
    [
        {"classes": 3},
        {"classes": "ab"},
        {"classes": [{"a": 1}, [1]]},
        {"classes": ["a", "b", "c"]},
        {"loss": None},
        {"loss": ["mse"]},
        {"loss": "l7"},
    ],
)
def test_metadata_of_another_meaning_is_refused(here: Path, capsys: Capture, about: dict[str, Any]) -> None:
    gbnn.save("m.safetensors", models.mlp([4, 8, 2], density=0.5, seed=0), metadata=about)
    assert next(iter(about)) in refused(capsys, "predict", "m.safetensors", "--data", "bare.csv")


def test_top_is_for_classes_and_labels(here: Path, capsys: Capture) -> None:
    np.savez("many.npz", x=np.eye(4), y=np.eye(4))
    np.savez("reals.npz", x=np.eye(4), y=np.eye(4) / 2)
    assert "--top" in refused(capsys, "predict", trained("reals.npz"), "--data", "reals.npz", "--top", "2")
    assert "--top" in refused(capsys, "predict", trained("many.npz"), "--data", "many.npz", "--top", "5")
    found = answer(capsys, "predict", "many.safetensors", "--data", "many.npz", "--top", "2")
    assert [len(labels) for labels in found["labels"]] == [2] * 4


@pytest.mark.parametrize("command", ["info", "evaluate", "predict"])
def test_models_that_are_no_files(here: Path, capsys: Capture, command: str) -> None:
    os.mkfifo("pipe")
    data = [] if command == "info" else ["--data", "bare.csv"]
    for path in ("pipe", os.devnull, ".", "", "no", "bare.csv", "a" * 5000):
        refused(capsys, command, path, *data)


@pytest.mark.parametrize(
    ("more", "option"),
    [
        (["--hidden", "-3"], "--hidden"),
        (["--nnz", "100000000"], "--nnz"),
        (["--activation", "relo"], "--activation"),
        (["--allocation", "fair"], "--allocation"),
        (["--dropout", "2"], "--dropout"),
        (["--seed", "-1"], "--seed"),
        (["--threads", "0"], "--threads"),
        (["--rewire", "set", "--rewire-fraction", "2"], "--rewire-fraction"),
        (["--rewire", "rigl", "--rewire-every", "0"], "--rewire-every"),
        (["--rewire", "none", "--rewire-fraction", "0.2"], "--rewire-fraction"),
        (["--rewire-every", "5"], "--rewire-every"),
        (["--rewire-density", "0.1"], "--rewire-density"),
        (["--rewire-budget", "1000"], "--rewire-budget"),
        (["--rewire", "grow-on-demand"], "--rewire-budget"),
        (["--rewire", "grow-on-demand", "--rewire-budget", "-1"], "--rewire-budget"),
    ],
)
def test_an_error_names_the_option_and_not_the_argument_behind_it(
    more: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--data", "digits", "--epochs", "1", "--quiet", *more]) == 2
    assert capsys.readouterr().err.startswith(f"gbnn: error: {option}: expected")
