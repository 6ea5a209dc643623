"""`fit`: what its history says, what callbacks hear, and that it is `train` on the rows in a random order."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.bits import bits

from gbnn import layers, losses, models, topology, training
from gbnn.data import Batches
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.training import EpochEnd, Event, Step, fit

Array = np.ndarray[Any, Any]


def classes(rows: int = 60, seed: int = 0) -> tuple[Array, Array]:
    """Two classes that a line separates."""
    x = np.random.default_rng(seed).standard_normal((rows, 8))
    return x, (x[:, 0] > x[:, 1]).astype(np.int64)


def network(outputs: int = 2, dtype: Any = np.float32) -> layers.Chain:
    return models.mlp([8, 30, outputs], nnz=[80, 30], dropout=0.1, dtype=dtype, seed=0)


def same_rows(first: training.History, second: training.History) -> bool:
    """Whether two histories agree in everything but time."""
    timed = {"seconds", "edges_per_second"}
    plain = [[{k: v for k, v in row.items() if k not in timed} for row in h.rows] for h in (first, second)]
    return plain[0] == plain[1]


# -- History -------------------------------------------------------------------------------------------------


def test_history_columns() -> None:
    usual = ["epoch", "loss", "accuracy", "seconds", "edges_per_second", "nnz", "dropped", "grown", "regrown"]
    history = fit(network(), classes(), epochs=2)
    assert list(history.rows[0]) == usual
    history = fit(network(), classes(), epochs=3, validation=classes(20, seed=1))
    assert all(list(row) == [*usual, "val_loss", "val_accuracy"] for row in history.rows)
    assert history["epoch"] == [0, 1, 2]
    assert history["nnz"] == [110] * 3
    assert all(value > 0 for name in ("seconds", "edges_per_second") for value in history[name])


def test_history_values() -> None:
    """The means over samples of what the steps say; validation as the model is after the epoch."""
    steps: list[Step] = []
    results: list[dict[str, float]] = []
    validation = classes(20, seed=1)

    def listen(event: Event) -> None:
        if isinstance(event, Step):
            steps.append(event)
        else:
            results.append(training.evaluate(event.model, validation))

    history = fit(network(), classes(50), epochs=2, batch_size=16, validation=validation, callbacks=[listen])
    rows = np.array([s.rows for s in steps]).reshape(2, 4)
    assert rows.tolist() == [[16, 16, 16, 2]] * 2
    for name, values in (
        ("loss", [s.loss for s in steps]),
        ("accuracy", [s.metrics()["accuracy"] for s in steps]),
    ):
        expected = (np.array(values).reshape(2, 4) * rows).sum(axis=1) / 50
        np.testing.assert_allclose(history[name], expected, rtol=1e-12)
    assert history["val_loss"] == [r["loss"] for r in results]
    assert history["val_accuracy"] == [r["accuracy"] for r in results]


def test_rewiring_is_counted() -> None:
    steps: list[Event] = []
    history = fit(network(), classes(), epochs=3, rewiring=topology.set_(0.3), callbacks=[steps.append])
    moved = [[done.change.grown for s in steps if isinstance(s, Step) and s.epoch == e for done in s.changes]
             for e in range(3)]  # fmt: skip
    assert history["grown"] == history["dropped"] == [sum(m) for m in moved]
    assert history["grown"][0] > 0
    assert history["grown"][2] == 0
    assert history["nnz"] == [110] * 3


def test_a_single_row_has_no_r2_and_spoils_none() -> None:
    x, _ = classes(21)
    history = fit(network(1), (x, x[:, 0]), epochs=2, batch_size=10, loss=losses.mse)
    assert all(math.isfinite(value) for value in history["r2"])
    history = fit(network(1), (x, x[:, 0]), epochs=1, batch_size=1, loss=losses.mse)
    assert math.isnan(history["r2"][0])


# -- Learning ------------------------------------------------------------------------------------------------


def multi_label(rows: int = 200, seed: int = 0) -> tuple[Array, Array]:
    x = np.random.default_rng(seed).standard_normal((rows, 8))
    return x, (x[:, :3] > 0).astype(np.int8)


def regression(rows: int = 200, seed: int = 0) -> tuple[Array, Array]:
    x = np.random.default_rng(seed).standard_normal((rows, 8))
    return x, np.stack([x[:, 0] - x[:, 1], x[:, 2]], axis=1)


@pytest.mark.parametrize(
    ("make", "outputs", "loss", "metric", "least"),
    [
        (classes, 2, losses.cross_entropy, "accuracy", 0.9),
        (classes, 2, losses.hinge, "accuracy", 0.9),
        (multi_label, 3, losses.binary_cross_entropy, "accuracy", 0.85),
        (regression, 2, losses.mse, "r2", 0.7),
        (regression, 2, losses.huber, "r2", 0.7),
    ],
    ids=["cross_entropy", "hinge", "binary_cross_entropy", "mse", "huber"],
)
def test_it_learns(make: Any, outputs: int, loss: losses.Loss, metric: str, least: float) -> None:
    model = models.mlp([8, 60, outputs], nnz=[240, 60], seed=0)
    history = fit(
        model,
        make(200),
        epochs=25,
        batch_size=20,
        loss=loss,
        optimizer=training.adam(1e-2),
        rewiring=topology.set_(0.2),
        validation=make(100, seed=1),
    )
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history[f"val_{metric}"][-1] > max(least, history[f"val_{metric}"][0])


# -- Data ----------------------------------------------------------------------------------------------------


def fitted(data: Any, **options: Any) -> tuple[dict[str, Any], training.History]:
    model = network(3 if options.get("loss") is losses.binary_cross_entropy else 2)
    history = fit(model, data, **{"epochs": 2, "batch_size": 16, **options})
    return bits(model), history


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_data_is_dense_data(kind: Callable[..., Any]) -> None:
    x, y = classes()
    x = np.where(np.abs(x) < 1, 0, x)
    (_, dense), (_, sparse) = fitted((x, y), validation=(x, y)), fitted((kind(x), y), validation=(kind(x), y))
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):  # sums are in another order
        np.testing.assert_allclose(sparse[name], dense[name], rtol=1e-3)


def test_sparse_targets_are_dense_targets() -> None:
    x, y = multi_label()
    loss = losses.binary_cross_entropy
    (dense, first), (sparse, second) = fitted((x, y), loss=loss), fitted((x, sp.csr_array(y)), loss=loss)
    assert dense == sparse
    assert same_rows(first, second)


def test_seeds() -> None:
    results = [fitted(classes(), seed=seed) for seed in (1, 1, 2, np.random.default_rng(1))]
    assert results[0][0] == results[1][0] == results[3][0]
    assert same_rows(results[0][1], results[1][1])
    assert results[0][0] != results[2][0]


def test_rewiring_sees_the_rows_in_the_same_order() -> None:
    orders = []
    for rewiring in (None, topology.set_(0.3), topology.rigl(2, 0.2)):
        seen: list[Event] = []
        fitted(classes(), rewiring=rewiring, callbacks=[seen.append])
        orders.append([s.target.tolist() for s in seen if isinstance(s, Step)])
    assert orders[0] == orders[1] == orders[2]
    assert orders[0][:4] != orders[0][4:]  # each epoch in an order of its own


def test_fit_is_train_on_batches() -> None:
    """Iterables of batches are taken as they are."""
    x, y = classes()
    pairs = [(x[k : k + 16], y[k : k + 16]) for k in range(0, 60, 16)]
    model = network()
    for _ in training.train(model, pairs, epochs=2):
        pass
    ordered = Batches(x, y, 16, shuffle=False)
    for data in (pairs, ordered):
        assert fitted(data)[0] == bits(model)
    one, two = network(), network()
    for _ in training.train(one, pairs):
        pass
    fit(two, iter(pairs), epochs=1)
    assert bits(one) == bits(two)
    two_batches = fitted(pairs[:2])[1]  # a list of two pairs is no pair
    assert len(two_batches) == 2


def test_going_on() -> None:
    """With the state, and the generator that draws the order, two calls are one."""
    x, y = classes()
    whole, parts = network(), network()
    fit(whole, Batches(x, y, 16, seed=3), epochs=3, optimizer=training.sgd(0.1, momentum=0.9))
    batches, ends = Batches(x, y, 16, seed=3), list[Event]()
    fit(parts, batches, epochs=1, optimizer=training.sgd(0.1, momentum=0.9), callbacks=[ends.append])
    state = ends[-1].state
    history = fit(parts, batches, epochs=2, optimizer=training.sgd(0.1, momentum=0.9), state=state)
    assert bits(whole) == bits(parts)
    assert state.step == 12
    assert history["epoch"] == [0, 1]


# -- Callbacks -----------------------------------------------------------------------------------------------


def test_callbacks_hear_every_event_in_order() -> None:
    heard: list[tuple[str, Any]] = []
    model = network()

    def listen(name: str) -> training.Callback:
        def callback(event: Event) -> None:
            what = ("step", event.index) if isinstance(event, Step) else ("end", event.epoch)
            heard.append((name, what))
            assert event.model is model

        return callback

    fit(model, classes(40), epochs=2, batch_size=20, callbacks=[listen("a"), listen("b")])
    events = [("step", 0), ("step", 1), ("end", 0), ("step", 2), ("step", 3), ("end", 1)]
    assert heard == [(name, event) for event in events for name in "ab"]


def test_an_epoch_end_holds_its_row() -> None:
    ends: list[Event] = []
    history = fit(network(), classes(), epochs=2, validation=classes(9), callbacks=[ends.append])
    ends = [e for e in ends if isinstance(e, EpochEnd)]
    assert [e.metrics for e in ends] == history.rows
    assert all(e.history is history and e.epochs == 2 for e in ends)
    assert [e.epoch for e in ends] == [0, 1]


@pytest.mark.parametrize("at", [0, 2, 3, 5])
def test_stopping_after_a_step(at: int) -> None:
    """Others hear of that step, too; an epoch that is complete with it has its row."""
    others: list[Event] = []
    stop = lambda event: isinstance(event, Step) and event.index == at  # noqa: E731
    history = fit(network(), classes(), epochs=5, batch_size=20, callbacks=[stop, others.append])
    assert max(e.index for e in others if isinstance(e, Step)) == at
    assert len(history) == (at + 1) // 3
    assert sum(isinstance(e, EpochEnd) for e in others) == len(history)


def test_stopping_after_an_epoch() -> None:
    others: list[Event] = []
    stop = lambda event: isinstance(event, EpochEnd) and event.epoch == 1  # noqa: E731
    history = fit(network(), classes(), epochs=5, callbacks=[stop, others.append])
    assert len(history) == 2
    assert sum(isinstance(e, EpochEnd) for e in others) == 2


# -- Progress ------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "progress", "shown"),
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_the_progress_bar(
    terminal: bool, progress: bool | None, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    fit(network(), classes(), epochs=2, batch_size=20, progress=progress)
    text = stream.getvalue()
    if not shown:
        assert text == ""
        return
    assert "6/6" in text
    assert all(word in text for word in ("loss=", "accuracy=", "edges/s="))


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    fit(network(), classes(), epochs=1)
    assert capfd.readouterr() == ("", "")


# -- Bad input -----------------------------------------------------------------------------------------------

X, Y = classes(12)


def spoiled(value: float) -> Array:
    x = X.copy()
    x[3, 4] = value
    return x


@pytest.mark.parametrize(
    ("options", "kind", "where"),
    [
        ({"data": 5}, KindError, "data"),
        ({"data": None}, KindError, "data"),
        ({"data": (X,)}, ArgumentError, "data"),
        ({"data": (X, Y, Y)}, ArgumentError, "data"),
        ({"data": (X[:0], Y[:0])}, ArgumentError, "x"),
        ({"data": ([], [])}, ArgumentError, "x"),
        ({"data": (5, Y)}, KindError, "x"),
        ({"data": (X[:, :7], Y)}, ArgumentError, "x"),
        ({"data": (sp.csr_array(X[:, :7]), Y)}, ArgumentError, "x"),
        ({"data": (X.astype(str), Y)}, KindError, "x"),
        ({"data": (spoiled(np.nan), Y)}, NonFiniteError, "x"),
        ({"data": (sp.csr_array(spoiled(np.inf)), Y)}, NonFiniteError, "x"),
        ({"data": (spoiled(1e300), Y)}, ArgumentError, "x"),
        ({"data": (X, Y[:5])}, ArgumentError, "target"),
        ({"data": (X, Y + 1)}, ArgumentError, "target"),
        ({"data": (X, Y - 1)}, ArgumentError, "target"),
        ({"data": (X, Y.astype(float))}, KindError, "target"),
        ({"data": (X, None)}, KindError, "target"),
        ({"data": (X, X[:, :2] * np.nan), "loss": losses.mse}, NonFiniteError, "target"),
        ({"data": [X, Y]}, KindError, "batches, epoch 0, batch 0"),
        ({"data": []}, ArgumentError, "batches"),
        ({"data": [(X, Y), (X, Y + 1)]}, ArgumentError, "target, epoch 0, batch 1"),
        ({"validation": 5}, KindError, "validation"),
        ({"validation": (X,)}, ArgumentError, "validation"),
        ({"validation": (X[:0], Y[:0])}, ArgumentError, "x, validation"),
        ({"validation": (X[:, :7], Y)}, ArgumentError, "x, validation"),
        ({"validation": (spoiled(np.nan), Y)}, NonFiniteError, "x, validation"),
        ({"validation": (X, Y + 1)}, ArgumentError, "target, validation"),
        ({"validation": (X, Y[:5])}, ArgumentError, "target, validation"),
        ({"model": "mlp"}, KindError, "model"),
        ({"loss": "mse"}, KindError, "loss"),
        ({"optimizer": "adam"}, KindError, "optimizer"),
        ({"rewiring": "set"}, KindError, "rewiring"),
        ({"state": 3}, KindError, "state"),
        ({"epochs": 0}, ArgumentError, "epochs"),
        ({"epochs": 2.0}, KindError, "epochs"),
        ({"batch_size": 0}, ArgumentError, "batch_size"),
        ({"batch_size": "all"}, KindError, "batch_size"),
        ({"seed": None}, KindError, "seed"),
        ({"callbacks": print}, KindError, "callbacks"),
        ({"callbacks": [print, "x"]}, KindError, r"callbacks\[1\]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else str(value),
)
def test_bad_input(options: dict[str, Any], kind: type[GbnnError], where: str) -> None:
    model = network()
    before = bits(model)
    arguments = {"model": model, "data": (X, Y), "batch_size": 4, "epochs": 1} | options
    with pytest.raises(kind, match=f"^{where}: expected "):
        fit(arguments.pop("model"), arguments.pop("data"), **arguments)
    if "batch 1" not in where:  # all but what shows in a later batch is found before the first step
        assert bits(model) == before
