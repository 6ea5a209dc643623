"""Callbacks for `fit`: plain functions of an event, each made by a function with its settings."""

from __future__ import annotations

import csv
import io
import json
import math
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gbnn.errors import ArgumentError, FileError, KindError, MissingError, check_float, check_int
from gbnn.layers import Layer
from gbnn.training import snapshot
from gbnn.training.checkpoint import save
from gbnn.training.fit import Callback, EpochEnd, Event

__all__ = ["best_checkpoint", "csv_log", "early_stopping", "jsonl_log", "tensorboard"]


def _watch(monitor: str, mode: str, least: float = 0.0) -> Callable[[EpochEnd], bool]:
    """Return a function that says whether an epoch's value is the best so far of its model."""
    if not isinstance(monitor, str):
        raise KindError("monitor", "the name of a column", repr(monitor))
    if mode not in ("auto", "min", "max"):
        raise ArgumentError("mode", "'auto', 'min' or 'max'", mode)
    sign = 1.0 if mode == "min" or (mode == "auto" and "loss" in monitor) else -1.0
    best = math.inf
    model: Layer | None = None

    def better(event: EpochEnd) -> bool:
        nonlocal best, model
        if event.model is not model:
            best, model = math.inf, event.model
        if monitor not in event.metrics:
            raise ArgumentError("monitor", f"one of {sorted(event.metrics)}", monitor)
        value = sign * float(event.metrics[monitor])
        if value < best - least:
            best = value
            return True
        return False

    return better


def early_stopping(
    monitor: str = "val_loss",
    patience: int = 5,
    *,
    min_delta: float = 0.0,
    mode: str = "auto",
    restore_best: bool = True,
) -> Callback:
    """Stop when a value has not got better for `patience` epochs.

    Parameters
    ----------
    monitor : str
        A column of the history.
    patience : int
        Epochs without improvement before it stops, at least 1.
    min_delta : float
        What counts as better, in the units of the value.
    mode : {"auto", "min", "max"}
        Which way is better; auto: smaller for names with "loss", larger for all others.
    restore_best : bool
        When it stops, or the last epoch ends, put the parameters and buffers of the best epoch back. The
        optimizer's state stays, and follows edges that have moved since.

    Notes
    -----
    Each `fit` begins anew. In the list of callbacks it comes after those that save the model.

    Examples
    --------
    >>> from gbnn import training
    >>> stop = training.early_stopping("val_accuracy", patience=3)
    """
    check_int("patience", patience, 1)
    least = check_float("min_delta", min_delta, 0)
    better = _watch(monitor, mode, least)
    waited = 0
    kept: snapshot.Snapshot | None = None

    def callback(event: Event) -> bool:
        nonlocal better, waited, kept
        if not isinstance(event, EpochEnd):
            return False
        if event.epoch == 0:
            better, waited, kept = _watch(monitor, mode, least), 0, None
        if better(event):
            waited = 0
            kept = snapshot.take(event.model) if restore_best else None
        else:
            waited += 1
        ends = waited >= patience
        if (ends or event.epoch == event.epochs - 1) and kept is not None and waited:
            snapshot.go_back(event.model, kept, event.state.slots, event.state.memory)
        return ends

    return callback


def best_checkpoint(
    path: Any, monitor: str = "val_loss", *, mode: str = "auto", metadata: dict[str, Any] | None = None
) -> Callback:
    """Save the model whenever a value is the best so far.

    Parameters
    ----------
    path : str or Path
        Overwritten at once, never half-written: see `save`.
    monitor, mode
        As in `early_stopping`.
    metadata : dict, optional
        JSON values kept in the file, beside the epoch and its metrics.

    Examples
    --------
    >>> from gbnn import training
    >>> keep = training.best_checkpoint("best.safetensors", "val_accuracy")
    """
    better = _watch(monitor, mode)

    def callback(event: Event) -> None:
        if isinstance(event, EpochEnd) and better(event):
            about = {"epoch": event.epoch, "metrics": event.metrics}
            save(path, event.model, metadata={**(metadata or {}), **about})

    return callback


def csv_log(path: Any) -> Callback:
    """Write a row of comma-separated values an epoch; the first row names the columns.

    The file is begun anew at the first epoch. FileError if it cannot be written.

    Examples
    --------
    >>> from gbnn import training
    >>> log = training.csv_log("training.csv")
    """
    names: list[str] = []

    def callback(event: Event) -> None:
        if not isinstance(event, EpochEnd):
            return
        text = io.StringIO()
        rows = csv.writer(text)
        first = not names
        if first:
            names.extend(event.metrics)
            rows.writerow(names)
        rows.writerow([event.metrics.get(name, "") for name in names])
        _write(path, text.getvalue(), first)

    return callback


def jsonl_log(path: Any) -> Callback:
    """Write a JSON object an epoch, one a line; the file is begun anew at the first epoch.

    Numbers that are not finite are written as null: JSON has none. FileError if it cannot be written.

    Examples
    --------
    >>> from gbnn import training
    >>> log = training.jsonl_log("training.jsonl")
    """
    begun = False

    def callback(event: Event) -> None:
        nonlocal begun
        if not isinstance(event, EpochEnd):
            return
        row = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in event.metrics.items()
        }
        _write(path, json.dumps(row) + "\n", not begun)
        begun = True

    return callback


def _write(path: Any, text: str, first: bool) -> None:
    try:
        with Path(path).open("w" if first else "a", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise FileError(str(path), "a file that can be written", error.strerror or error) from None


def tensorboard(folder: Any) -> Callback:
    """Write every epoch's numbers for TensorBoard (``pip install 'graphblas-nn[tensorboard]'``).

    Parameters
    ----------
    folder : str or Path
        Made if missing; ``tensorboard --logdir folder`` shows it.

    Raises
    ------
    MissingError
        If tensorboard is not installed.
    FileError
        If the folder cannot be written to.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event as Record
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        wanted = "tensorboard: pip install 'graphblas-nn[tensorboard]'"
        raise MissingError("tensorboard", wanted, "no such package") from None
    try:
        writer = EventFileWriter(str(folder))
    except OSError as error:
        raise FileError(str(folder), "a folder that can be written", error.strerror or error) from None

    def callback(event: Event) -> None:
        if not isinstance(event, EpochEnd):
            return
        shown = [
            Summary.Value(tag=name, simple_value=float(value))
            for name, value in event.metrics.items()
            if name != "epoch"
        ]
        writer.add_event(Record(wall_time=time.time(), step=event.epoch, summary=Summary(value=shown)))
        writer.flush()

    weakref.finalize(callback, writer.close)
    return callback
