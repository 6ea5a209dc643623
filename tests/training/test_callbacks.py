"""Callbacks of `fit`, alone on events made here and inside a training; and the snapshots they go back to."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bits import bits, bits_of

import gbnn
from gbnn import layers, models, topology, training
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError, MissingError
from gbnn.layers import Layer
from gbnn.training import EpochEnd, Event, History, State, fit, snapshot

Array = np.ndarray[Any, Any]


def classes(rows: int = 40, seed: int = 0) -> tuple[Array, Array]:
    x = np.random.default_rng(seed).standard_normal((rows, 8))
    return x, (x[:, 0] > x[:, 1]).astype(np.int64)


def network() -> layers.Chain:
    return models.mlp([8, 20, 2], nnz=[60, 20], normalize="batch", seed=0)


class Epochs:
    """Ends of epochs with values of our own, of a model whose bias says the epoch."""

    def __init__(self, epochs: int, model: Layer | None = None) -> None:
        self.model = layers.Dense(np.zeros((2, 1))) if model is None else model
        self.epochs = epochs
        self.state = State.start(self.model, training.sgd(0.1))
        self.history = History()

    def end(self, epoch: int, **metrics: Any) -> EpochEnd:
        self.model.parameters()["weights"][...] = epoch
        return EpochEnd(epoch, self.epochs, metrics, self.model, self.state, self.history)

    def now(self) -> float:
        return float(self.model.parameters()["weights"][0, 0])


def stops(
    callback: training.Callback,
    values: list[float],
    name: str = "val_loss",
    epochs: int = 99,
    model: Layer | None = None,
) -> Any:
    """Return the epoch at which it stops (None: never), and of which epoch the parameters then are."""
    run = Epochs(epochs, model)
    for epoch, value in enumerate(values):
        if callback(run.end(epoch, **{name: value})):
            return epoch, run.now()
    return None, run.now()


# -- Early stopping ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"patience": 1}, [3, 2, 1, 0], (None, 3)),
        ({"patience": 1}, [3, 2, 2, 0], (2, 1)),  # as good is not better
        ({"patience": 2}, [3, 2, 4, 1, 5, 1, 0], (5, 3)),
        ({"patience": 2, "restore_best": False}, [3, 2, 4, 1, 5, 1, 0], (5, 5)),
        ({"patience": 1, "min_delta": 0.5}, [3, 2.4, 2.0, 0], (2, 1)),
        ({"patience": 1, "mode": "max"}, [3, 2, 1], (1, 0)),
        ({"patience": 2}, [1, math.nan, math.nan, 0], (2, 0)),
        ({"patience": 2}, [math.nan, math.nan, 0], (1, 1)),  # nothing to go back to
        ({"patience": 2}, [math.inf, 5, 6, 7], (3, 1)),
        ({"patience": 1, "monitor": "val_accuracy"}, [0.1, 0.2, 0.3], (None, 2)),
        ({"patience": 1, "monitor": "val_accuracy"}, [0.1, 0.2, 0.2], (2, 1)),
        ({"patience": 1, "monitor": "val_accuracy", "mode": "min"}, [0.1, 0.2], (1, 0)),
    ],
)
def test_when_it_stops(options: dict[str, Any], values: list[float], expected: tuple[Any, float]) -> None:
    callback = training.early_stopping(**options)
    assert stops(callback, values, options.get("monitor", "val_loss")) == expected


def test_the_last_epoch_restores_too() -> None:
    callback = training.early_stopping(patience=5)
    assert stops(callback, [2, 1, 3, 4], epochs=4) == (None, 1)
    assert stops(callback, [4, 3, 2, 1], epochs=4) == (None, 3)


def test_each_training_begins_anew() -> None:
    callback = training.early_stopping(patience=2)
    model = layers.Dense(np.zeros((2, 1)))
    assert stops(callback, [1, 2, 3], model=model) == (2, 0)
    assert stops(callback, [9, 8, 7, 9, 9], model=model) == (4, 2)
    assert stops(callback, [math.nan, 5, 6, 7]) == (3, 1)


def test_early_stopping_in_fit() -> None:
    """It really stops, and what comes back is the best epoch, to the bit: edges, values and buffers."""
    model, kept = network(), []
    validation = classes(30, seed=1)

    def keep(event: Event) -> None:
        if isinstance(event, EpochEnd):
            kept.append(bits(event.model))

    history = fit(
        model,
        classes(),
        epochs=200,
        validation=validation,
        optimizer=training.sgd(0.5, momentum=0.9),
        rewiring=topology.set_(0.3),
        callbacks=[keep, training.early_stopping(patience=3)],
    )
    best = int(np.argmin(history["val_loss"]))
    assert len(history) == best + 4 < 200
    assert bits(model) == kept[best] != kept[-1]
    assert training.evaluate(model, validation)["loss"] == history["val_loss"][best]


def test_state_follows_the_edges_back() -> None:
    model = network()
    ends: list[Any] = []
    fit(
        model,
        classes(),
        epochs=40,
        validation=classes(30, seed=1),
        optimizer=training.sgd(0.5, momentum=0.9),
        rewiring=topology.set_(0.3),
        callbacks=[ends.append],
    )
    before = snapshot.take(model)
    state = ends[-1].state
    weights = model.parameters()["0.weights"]
    # Three edges go and three come; the slot of each edge says which edge it is.
    slot = state.slots["0.weights"]["momentum"] = (weights.sources * 100.0 + weights.targets).astype(
        np.float32
    )
    taken = set(zip(weights.sources.tolist(), weights.targets.tolist(), strict=True))
    free = [(i, j) for i in range(8) for j in range(20) if (i, j) not in taken][:3]
    change = weights.rewire([0, 5, 9], *zip(*free, strict=True), 1.0)
    state.slots["0.weights"]["momentum"] = change.carry(slot, 7.0)
    gone = {0, 5, 9}
    snapshot.go_back(model, before, state.slots)
    expected = [0.0 if k in gone else value for k, value in enumerate(slot.tolist())]
    assert model.parameters()["0.weights"] is weights
    assert state.slots["0.weights"]["momentum"].tolist() == expected
    assert bits(model) == bits_of(before)


def test_a_snapshot_is_a_copy() -> None:
    model = network()
    before, kept = bits(model), snapshot.take(model)
    fit(model, classes(), epochs=2, optimizer=training.sgd(0.5), rewiring=topology.set_(skip_last=False))
    changed = bits(model)
    assert all(before[name] != changed[name] for name in before)
    assert bits_of(kept) == before
    snapshot.go_back(model, kept)
    assert bits(model) == before
    fit(model, classes(), epochs=1)
    assert bits_of(kept) == before


def test_a_snapshot_of_another_model() -> None:
    kept = snapshot.take(network())
    for other in (models.mlp([8, 2], nnz=5), models.mlp([8, 21, 2], nnz=[60, 20], normalize="batch")):
        before = bits(other)
        with pytest.raises(ArgumentError, match=r"^snapshot: expected "):
            snapshot.go_back(other, kept)
        assert bits(other) == before


# -- The best checkpoint -------------------------------------------------------------------------------------


def test_best_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    validation = classes(30, seed=1)[0], np.arange(30) % 2  # nothing there to learn: it gets worse
    kept: list[Any] = []
    model = network()
    history = fit(
        model,
        classes(),
        epochs=12,
        validation=validation,
        optimizer=training.sgd(0.5, momentum=0.9),
        callbacks=[
            training.best_checkpoint(path, metadata={"data": "line", "epoch": "mine"}),
            lambda event: kept.append(bits(event.model)) if isinstance(event, EpochEnd) else None,
        ],
    )
    best = int(np.argmin(history["val_loss"]))
    assert best < 11  # later epochs were worse, and did not overwrite it
    saved = training.load_all(path)
    assert bits(saved.model) == kept[best] != bits(model)
    assert saved.metadata == {"data": "line", "epoch": best, "metrics": history.rows[best]}
    assert saved.state is None
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_best_checkpoint_goes_on_with_its_model_and_begins_with_another(tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    keep = training.best_checkpoint(path, "val_accuracy")
    first, second = Epochs(9), Epochs(9)

    def kept() -> float:
        return float(gbnn.load(path).parameters()["weights"][0, 0])  # type: ignore[index]

    keep(first.end(3, val_accuracy=0.5))
    keep(first.end(4, val_accuracy=0.4))
    assert kept() == 3
    keep(first.end(0, val_accuracy=0.45))  # the same model, in another call of fit
    assert kept() == 3
    keep(second.end(1, val_accuracy=0.1))
    assert kept() == 1


def test_best_checkpoint_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="a file that can be written"):
        fit(
            network(),
            classes(),
            epochs=1,
            callbacks=[training.best_checkpoint(tmp_path / "no" / "x", "loss")],
        )


@pytest.mark.parametrize(
    ("options", "kind", "where"),
    [
        ({"monitor": 3}, KindError, "monitor"),
        ({"mode": "best"}, ArgumentError, "mode"),
        ({"mode": None}, ArgumentError, "mode"),
        ({"patience": 0}, ArgumentError, "patience"),
        ({"patience": 1.5}, KindError, "patience"),
        ({"min_delta": -1}, ArgumentError, "min_delta"),
        ({"min_delta": math.nan}, ArgumentError, "min_delta"),
        ({"min_delta": "0"}, KindError, "min_delta"),
    ],
    ids=str,
)
def test_bad_arguments(options: dict[str, Any], kind: type[GbnnError], where: str) -> None:
    with pytest.raises(kind, match=f"^{where}: expected "):
        training.early_stopping(**options)
    if where in ("monitor", "mode"):
        with pytest.raises(kind, match=f"^{where}: expected "):
            training.best_checkpoint("x", **options)


def test_a_column_that_is_not_there() -> None:
    """The default watches validation; without any it says what there is."""
    with pytest.raises(ArgumentError, match=r"monitor: .*'loss'.* got val_loss"):
        fit(network(), classes(), epochs=1, callbacks=[training.early_stopping()])


# -- Logs ----------------------------------------------------------------------------------------------------


@pytest.fixture
def logged(tmp_path: Path) -> tuple[History, Path]:
    for name in ("log.csv", "log.jsonl"):
        (tmp_path / name).write_text("what was here before\n")
    callbacks = [training.csv_log(tmp_path / "log.csv"), training.jsonl_log(str(tmp_path / "log.jsonl"))]
    history = fit(
        network(),
        classes(),
        epochs=3,
        validation=classes(9, seed=1),
        rewiring=topology.set_(0.2),
        callbacks=callbacks,
    )
    return history, tmp_path


def test_csv_log_parses_back(logged: tuple[History, Path]) -> None:
    history, folder = logged
    with (folder / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: float(cell) for name, cell in row.items()} for row in rows] == history.rows
    assert list(rows[0]) == list(history.rows[0])


def test_jsonl_log_parses_back(logged: tuple[History, Path]) -> None:
    history, folder = logged
    lines = (folder / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history.rows


def test_csv_log_keeps_its_columns(tmp_path: Path) -> None:
    path, run = tmp_path / "x.csv", Epochs(3)
    log = training.csv_log(path)
    log(run.end(0, loss=1.0, note="a, b"))
    log(run.end(1, note='say "c"', more=5))
    assert path.read_bytes() == b'loss,note\r\n1.0,"a, b"\r\n,"say ""c"""\r\n'


def test_jsonl_log_is_json_also_where_numbers_are_none(tmp_path: Path) -> None:
    path, run = tmp_path / "x.jsonl", Epochs(3)
    training.jsonl_log(path)(run.end(0, loss=math.nan, top=math.inf, nnz=0))

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(path.read_text(), parse_constant=refuse) == {"loss": None, "top": None, "nnz": 0}


@pytest.mark.parametrize("log", [training.csv_log, training.jsonl_log])
def test_logs_that_cannot_be_written(log: Any, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "log", *full_device()):
        with pytest.raises(FileError, match="a file that can be written"):
            log(path)(Epochs(1).end(0, loss=1.0))


def full_device() -> list[Path]:
    """Linux's file that is always full."""
    return [p for p in [Path("/dev/full")] if p.exists()]


def test_logs_take_no_notice_of_steps(tmp_path: Path) -> None:
    step = next(training.train(network(), [classes()]))
    for log in (training.csv_log(tmp_path / "a"), training.jsonl_log(tmp_path / "b")):
        assert not log(step)
    assert list(tmp_path.iterdir()) == []


# -- TensorBoard ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # those of tensorboard's own imports
def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = tmp_path / "deep" / "runs"
    history = fit(network(), classes(), epochs=3, callbacks=[training.tensorboard(folder)])
    events = EventAccumulator(str(folder)).Reload()
    assert set(events.Tags()["scalars"]) == set(history.rows[0]) - {"epoch"}
    for name in ("loss", "accuracy", "nnz"):
        shown = events.Scalars(name)
        assert [event.step for event in shown] == [0, 1, 2]
        np.testing.assert_allclose([event.value for event in shown], history[name], rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_in_no_folder(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="a folder that can be written"):
        training.tensorboard(tmp_path / "file" / "runs")


def test_without_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(MissingError, match=r"graphblas-nn\[tensorboard\]"):
        training.tensorboard("x")
