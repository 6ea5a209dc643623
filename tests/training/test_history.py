"""`History`: columns, a table, a plot."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from gbnn.errors import ArgumentError, FileError, KindError, MissingError
from gbnn.training import History
from gbnn.training.history import table

ROWS: list[dict[str, Any]] = [
    {"epoch": 0, "loss": 1.23456, "accuracy": 0.5, "edges_per_second": 123_456_789.0, "nnz": 12_345},
    {
        "epoch": 1,
        "loss": 0.000125,
        "accuracy": 1.0,
        "edges_per_second": 9_999.0,
        "nnz": 12_345,
        "late": None,
    },
]


def test_columns() -> None:
    history = History(ROWS)
    assert len(history) == 2
    assert history["loss"] == [1.23456, 0.000125]
    assert history["late"] == [None, None]
    with pytest.raises(ArgumentError, match=r"accuracy.*'loss'.*got val_loss"):
        history["val_loss"]
    with pytest.raises(ArgumentError):
        History()["loss"]


def test_table() -> None:
    assert History(ROWS).table() == (
        "epoch      loss  accuracy  edges_per_second     nnz  late\n"
        "    0     1.235       0.5          1.23e+08  12,345      \n"
        "    1  0.000125         1              9999  12,345      "
    )
    assert repr(History(ROWS)) == f"History(2 epochs)\n{History(ROWS).table()}"
    assert History().table() == ""


def test_table_of_anything() -> None:
    text = table([{"a": math.nan, "b": -math.inf}, {"b": "word", "c": True}])
    assert [line.split() for line in text.splitlines()] == [["a", "b", "c"], ["nan", "-inf"], ["word", "1"]]
    assert len({len(line) for line in text.splitlines()}) == 1


def full_history() -> History:
    return History(
        [
            {"epoch": k, "loss": 2.0 / (k + 1), "accuracy": k / 4, "val_loss": 1.0 + k, "val_accuracy": k / 5}
            for k in range(4)
        ]
    )


def test_plot() -> None:
    pytest.importorskip("matplotlib")
    figure = full_history().plot()
    assert [axis.get_ylabel() for axis in figure.axes] == ["loss", "accuracy"]
    for axis, values in zip(figure.axes, ([2.0, 1.0, 2 / 3, 0.5], [0, 0.25, 0.5, 0.75]), strict=True):
        training, validation = axis.lines
        assert list(training.get_xdata()) == [0, 1, 2, 3]
        assert list(training.get_ydata()) == pytest.approx(values)
        assert [text.get_text() for text in axis.get_legend().texts] == ["training", "validation"]
        assert len(validation.get_ydata()) == 4


def test_plot_without_validation_and_of_nothing() -> None:
    pytest.importorskip("matplotlib")
    figure = History([{"epoch": 0, "loss": 1.0, "r2": 0.1}]).plot()
    assert [(axis.get_ylabel(), len(axis.lines)) for axis in figure.axes] == [("loss", 1), ("r2", 1)]
    assert History().plot().axes == []


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plot_to_a_file(ending: str, start: bytes, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"history.{ending}"
    full_history().plot(path)
    assert path.read_bytes().startswith(start)


def test_plot_to_no_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path in (tmp_path / "none" / "x.png", tmp_path / "x.unknown"):
        with pytest.raises(FileError, match="a picture that can be written"):
            full_history().plot(path)


def test_plot_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingError, match="pip install 'graphblas-nn\\[plot\\]'"):
        full_history().plot()


def rewired_history() -> History:
    history = History([{"epoch": 0, "loss": 1.0}])
    for step in (10, 20):
        for layer, nnz in (("0.weights", 100 - step), ("2.weights", 40 + step)):
            row = {"step": step, "epoch": 0, "layer": layer, "nnz": nnz, "dropped": 10, "grown": 10}
            history.rewirings.append({**row, "regrown": 5, "explored": 200 + step, "places": 1000})
    return history


def test_plot_of_edges() -> None:
    pytest.importorskip("matplotlib")
    edges, dropped, explored = rewired_history().plot_edges().axes
    assert [line.get_label() for line in edges.lines] == ["0.weights", "2.weights"]
    assert [list(line.get_ydata()) for line in edges.lines] == [[90, 80], [50, 60]]
    assert list(dropped.lines[0].get_ydata()) == pytest.approx([15 / 90, 15 / 80])
    assert list(dropped.lines[1].get_ydata()) == pytest.approx([5 / 90, 5 / 80])
    assert list(explored.lines[1].get_ydata()) == [0.21, 0.22]
    assert explored.get_xlabel() == "step"


def test_plot_of_edges_that_never_moved() -> None:
    pytest.importorskip("matplotlib")
    assert [len(axis.lines) for axis in History().plot_edges().axes] == [0, 0, 0]


@pytest.mark.parametrize("path", [3.5, 3, True, [1]])
def test_a_path_that_is_none(path: Any) -> None:
    pytest.importorskip("matplotlib")
    for plot in (History(ROWS).plot, rewired_history().plot_edges):
        with pytest.raises(KindError, match=r"^path: expected a path"):
            plot(path)
