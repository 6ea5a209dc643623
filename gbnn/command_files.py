"""The files of a command: what it writes never harms what it reads; networks and rows are read to fit."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbnn import losses, training
from gbnn.data import DATASETS, Records, load, read_records
from gbnn.errors import ArgumentError, FileError
from gbnn.layers import Layer
from gbnn.losses import Loss
from gbnn.training import container

__all__ = ["NUMBERS", "Network", "check_outputs", "samples", "saved_network", "write"]

NUMBERS = ("mse", "huber")
"""The losses whose targets are numbers: integers, too, are no class labels then."""


def check_outputs(options: Namespace) -> None:
    """Fail before the work and not after it, and never write over what is read."""
    data = [options.data] if os.path.exists(options.data) else options.data.split(",")
    read = [] if options.data in DATASETS else [path.strip() for path in data]
    used = {os.path.realpath(path) for path in [*read, *filter(None, [vars(options).get("model")])]}
    for name in ("out", "log"):
        path = vars(options).get(name)
        if path is not None and os.path.realpath(path) in used:
            raise ArgumentError(f"--{name}", "a file that has no other use here", path)
        if path is not None:
            used.add(os.path.realpath(path))
    if options.out is not None and not (options.command == "predict" and _is_stream(options.out)):
        container.new_file(options.out)


def _is_stream(path: str) -> bool:
    """Whether there is a pipe or device, which is written to and not replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def write(path: str, text: str) -> None:
    """Write a text to a file, whole or not at all, or to a pipe or device."""
    encoded = text.encode("utf-8", "backslashreplace")
    try:
        if _is_stream(path):
            Path(path).write_bytes(encoded)
        else:
            with container.replacing(path) as new:
                new.write_bytes(encoded)
    except OSError as error:
        raise FileError(path, "a file that can be written", error.strerror) from None


@dataclass(frozen=True)
class Network:
    """A saved network, and what is known of its training: what Python saved may say nothing of it."""

    model: Layer
    loss: Loss
    classes: tuple[str, ...]
    seed: int
    zero_based: bool | None = None


def saved_network(options: Namespace) -> Network:
    """Load the network of a command, with what was noted of its training."""
    saved = training.load_all(options.model)
    model, about = saved.model, saved.metadata
    where = f"{options.model}, metadata"
    try:
        noted = losses.named(about.get("loss", "cross_entropy"))
    except ArgumentError as error:
        raise FileError(f"{where}, {error.where}", error.expected, error.got) from None
    classes, seed = about.get("classes") or [], about.get("seed", 0)
    sound = isinstance(classes, list) and all(isinstance(name, (str, int)) for name in classes)
    if not sound or (classes and len(classes) != model.out_features):
        raise FileError(where, f"classes: {model.out_features} names, one an output", classes)
    loss = noted if options.loss is None else losses.named(options.loss)
    zero_based = about.get("zero_based")
    base = zero_based if isinstance(zero_based, bool) else None
    return Network(model, loss, tuple(map(str, classes)), seed if isinstance(seed, int) else 0, base)


def samples(options: Namespace, network: Network, *, targets: bool) -> tuple[Any, Any]:
    """Return the test part of data, or all rows of a file without one, read as the training data was.

    Without `targets` they are not looked at: in rows to predict they may be anything.
    """
    classes = network.classes
    if options.data in DATASETS:
        dataset = load(options.data, folder=options.folder, target=options.target, seed=network.seed)
        if targets and classes and dataset.classes != classes:
            wanted = f"data of the network's classes ({', '.join(classes[:3])}, ...)"
            raise ArgumentError("--data", wanted, f"{', '.join(dataset.classes[:3])}, ...")
        return dataset.test
    if options.folder is not None:
        raise ArgumentError("--folder", f"none with a file ({options.data})", options.folder)

    def records(known: tuple[str, ...] | None) -> Records:
        given = {"target": options.target, "classes": known, "features": network.model.in_features}
        return read_records(options.data, zero_based=network.zero_based, **given)

    if not targets:
        read = records(None)
    elif network.loss.name in NUMBERS:
        read = records(())
    else:
        read = records(classes or None)
        outputs = network.model.out_features or 0
        if not classes and 0 < len(read.classes) < outputs:  # without names, labels are class numbers
            read = records(tuple(map(str, range(outputs))))
    return (read.x, read.y) if read.x_test is None else (read.x_test, read.y_test)
