"""What the commands do: each takes the parsed arguments and returns (a result for --json, a text)."""

from __future__ import annotations

import csv
import io
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gbnn import losses, training
from gbnn.command_files import NUMBERS, Network, check_outputs, samples, saved_network, write
from gbnn.command_model import places, sized, standardized
from gbnn.command_rewire import rewiring_of
from gbnn.data import DATASETS, Dataset, load
from gbnn.errors import ArgumentError, FileError, check_float, check_int
from gbnn.losses import Loss
from gbnn.training.schedules import Schedule, constant, cosine, one_cycle

__all__ = ["datasets", "evaluate", "info", "peak_bytes", "predict", "train"]

Result = dict[str, Any]

OPTIMIZERS = {
    f.__name__: f for f in (training.adam, training.adamw, training.sgd, training.rmsprop, training.adagrad)
}
# Peaks of the one-cycle schedule; the first was chosen on Fashion-MNIST (docs/measurements.md).
RATES = {"adam": 3e-3, "adamw": 3e-3, "sgd": 0.1, "rmsprop": 1e-3, "adagrad": 1e-2}
SCHEDULES = ("one_cycle", "cosine", "constant")
# The losses for targets that are classes, several labels, or numbers: by the one that suits best.
CLASSES = ("cross_entropy", "hinge")
LOSSES = {
    "cross_entropy": CLASSES,
    "binary_cross_entropy": ("binary_cross_entropy", *NUMBERS),
    "mse": (*NUMBERS, "binary_cross_entropy"),
}


def train(options: Namespace) -> tuple[Result, str]:
    """Train a network on data, evaluate it on the test part, save it."""
    check_int("--epochs", options.epochs, 1)
    check_int("--batch-size", options.batch_size, 1)
    check_outputs(options)
    dataset, loss = _dataset(options)
    (x, y), validation = _with_validation(options, dataset)
    model = standardized(options, sized(options, dataset, x), x, y, numbers=loss.name in NUMBERS)
    steps = -(-x.shape[0] // options.batch_size) * options.epochs
    schedule = _schedule(options, steps)
    optimizer, rewiring = _optimizer(options, schedule), rewiring_of(options, schedule)
    callbacks = [] if options.log is None else [_log(options.log)]
    start = time.perf_counter()
    history = training.fit(
        model,
        (x, y),
        epochs=options.epochs,
        batch_size=options.batch_size,
        validation=validation,
        loss=loss,
        optimizer=optimizer,
        rewiring=rewiring,
        callbacks=callbacks,
        seed=options.seed,
        progress=False if options.quiet else None,
    )
    seconds = time.perf_counter() - start
    scores = training.evaluate(model, dataset.test, loss=loss)
    result: Result = {
        "data": dataset.name,
        "test": scores,
        "nnz": model.nnz,
        "density": model.nnz / places(model),
        "widths": [dataset.features, *options.hidden, dataset.outputs],
        "model_bytes": model.nbytes,
        "peak_bytes": peak_bytes(),
        "epochs": len(history),
        "seconds_per_epoch": seconds / len(history),
        "edges_per_second": float(np.median(history["edges_per_second"])),
        "history": history.rows,
        "out": options.out,
    }
    if options.out is not None:
        about = {
            "data": dataset.name,
            "loss": loss.name,
            "classes": list(dataset.classes),
            "seed": options.seed,
            "zero_based": dataset.zero_based,
            "test": scores,
        }
        training.save(options.out, model, metadata=about)
    return result, _train_text(result, history)


def _train_text(result: Result, history: training.History) -> str:
    rows = [
        *((f"test {name}", f"{value:.4f}") for name, value in result["test"].items()),
        ("edges (nnz)", f"{result['nnz']:,}"),
        ("density, all layers", f"{result['density']:.4g}"),
        ("widths", " - ".join(f"{w:,}" for w in result["widths"])),
        ("model", f"{result['model_bytes'] / 1e6:.2f} MB"),
        (
            "peak memory",
            "unknown" if result["peak_bytes"] is None else f"{result['peak_bytes'] / 1e6:.0f} MB",
        ),
        ("time per epoch", f"{result['seconds_per_epoch']:.2f} s"),
        ("edges per second", f"{result['edges_per_second']:.3g}"),
    ]
    if result["out"]:
        rows.append(("saved to", result["out"]))
    width = max(len(name) for name, _ in rows)
    summary = "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)
    return f"{history.table()}\n\n{summary}"


def evaluate(options: Namespace) -> tuple[Result, str]:
    """Measure a saved network on the test part of data, or on all rows of a file that has none."""
    network = saved_network(options)
    x, y = samples(options, network, targets=True)
    if y is None:
        raise ArgumentError("--data", "data with targets", "rows without any")
    scores = training.evaluate(network.model, (x, y), loss=network.loss)
    result = {"model": options.model, "data": options.data, "rows": int(x.shape[0]), **scores}
    return result, "\n".join(f"{name:9s} {value:.4f}" for name, value in scores.items())


def predict(options: Namespace) -> tuple[Result, str]:
    """Print a line a row: its class (or labels, or numbers), with probabilities where there are any."""
    check_outputs(options)
    network = saved_network(options)
    model, loss = network.model, network.loss
    top = check_int("--top", options.top, 1, model.out_features)
    if top > 1 and loss.name in NUMBERS:
        raise ArgumentError("--top", f"none with a network of {loss.name}: no number is first", top)
    x, _ = samples(options, network, targets=False)
    names = network.classes or [str(i) for i in range(model.out_features or 0)]
    result: Result = {"model": options.model, "data": options.data}
    if top > 1 and loss.name == "binary_cross_entropy":
        return _best_labels(options, network, x, names, top)
    y = training.outputs(model, x)
    if loss.name in CLASSES:
        order = np.argsort(-y, axis=1, kind="stable")[:, :top]
        result["classes"] = [[names[i] for i in row] for row in order]
        rows = [[*row] for row in result["classes"]]
        if loss.name == "cross_entropy":
            chances = np.take_along_axis(loss.probabilities(y), order, axis=1)
            result["probabilities"] = chances.astype(float).round(6).tolist()
            rows = [
                [cell for name, p in zip(row, chance, strict=True) for cell in (name, f"{p:.4f}")]
                for row, chance in zip(rows, result["probabilities"], strict=True)
            ]
    elif loss.name == "binary_cross_entropy":
        result["labels"] = [[names[i] for i in np.flatnonzero(row)] for row in loss.predict(y)]
        rows = [row or [""] for row in result["labels"]]
    else:
        result["outputs"] = y.astype(float).tolist()
        rows = [[f"{value:.6g}" for value in row] for row in result["outputs"]]
    return _table(options, result, rows)


def _best_labels(
    options: Namespace, network: Network, x: Any, names: Sequence[str], top: int
) -> tuple[Result, str]:
    """Print the K labels of each row that are most probable, without ever holding all scores of all rows."""
    labels, scores = training.top_k(network.model, x, top)
    chances = network.loss.probabilities(scores).astype(float).round(6)
    result: Result = {"model": options.model, "data": options.data}
    result["labels"] = [[names[i] for i in row if i >= 0] for row in labels]
    result["probabilities"] = [chance[row >= 0].tolist() for row, chance in zip(labels, chances, strict=True)]
    both = zip(result["labels"], result["probabilities"], strict=True)
    rows = [[cell for name, p in zip(*pair, strict=True) for cell in (name, f"{p:.4f}")] for pair in both]
    return _table(options, result, rows)


def _table(options: Namespace, result: Result, rows: list[Any]) -> tuple[Result, str]:
    """Print a line a row, to the file that was asked for or as the command's text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if options.out is not None:
        write(options.out, text.getvalue())
        return {**result, "out": options.out}, f"{len(rows):,} rows written to {options.out}"
    return result, text.getvalue().rstrip("\n")


def datasets(options: Namespace) -> tuple[Result, str]:
    """List the data sets known by name."""
    lines = {name: (loader.__doc__ or "").splitlines()[0] for name, loader in DATASETS.items()}
    rows = {name: line.removeprefix("Return ").removeprefix("the ") for name, line in lines.items()}
    return rows, "\n".join(f"{name.ljust(14)} {line}" for name, line in rows.items())


def info(options: Namespace) -> tuple[Result, str]:
    """Describe a saved network."""
    saved = training.load_all(options.model)
    model = saved.model
    result: Result = {
        "model": options.model,
        "nnz": model.nnz,
        "bytes": model.nbytes,
        "in_features": model.in_features,
        "out_features": model.out_features,
        "parameters": {n: list(p.shape) for n, p in model.parameters().items()},
        "metadata": saved.metadata,
    }
    about = "\n".join(f"{name}: {value}" for name, value in saved.metadata.items())
    return result, f"{model.describe()}\n{about}".rstrip()


# -- Parts ---------------------------------------------------------------------------------------------------


def peak_bytes() -> int | None:
    """Return the most memory this process has held, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _dataset(options: Namespace) -> tuple[Dataset, Loss]:
    """Return the data to train on, and the loss: the one asked for, or the one that suits best."""
    named = options.data in DATASETS
    asked = None if options.loss is None else losses.named(options.loss)
    # With a loss of numbers integers are numbers, and not class labels.
    classes = () if asked is not None and asked.name in NUMBERS and not named else None
    dataset = load(
        options.data, folder=options.folder, target=options.target, classes=classes, seed=options.seed
    )
    suited = LOSSES[dataset.loss]
    if asked is not None and asked.name not in suited:
        raise ArgumentError("--loss", f"one of {', '.join(suited)} for these targets", asked.name)
    return dataset, losses.named(dataset.loss) if asked is None else asked


def _with_validation(options: Namespace, dataset: Dataset) -> tuple[tuple[Any, Any], tuple[Any, Any] | None]:
    x, y = dataset.train
    if options.validation is None:
        return (x, y), None
    share = check_float("--validation", options.validation, 0, 1, open_low=True)
    order = np.random.default_rng(options.seed).permutation(x.shape[0])
    count = round(share * x.shape[0])
    if not 0 < count < x.shape[0]:
        raise ArgumentError("--validation", "a share that leaves rows on both sides", share)
    held, kept = order[:count], order[count:]
    return (x[kept], y[kept]), (x[held], y[held])


def _schedule(options: Namespace, steps: int) -> Schedule:
    """Return the learning rate over the steps."""
    if options.optimizer not in OPTIMIZERS:
        raise ArgumentError("--optimizer", f"one of {', '.join(OPTIMIZERS)}", options.optimizer)
    if options.schedule not in SCHEDULES:
        raise ArgumentError("--schedule", f"one of {', '.join(SCHEDULES)}", options.schedule)
    given = options.learning_rate
    rate = RATES[options.optimizer] if given is None else check_float("--learning-rate", given, 0)
    schedules: dict[str, Schedule] = {"constant": constant(rate), "cosine": cosine(rate, steps)}
    if options.schedule == "one_cycle":
        schedules["one_cycle"] = one_cycle(rate, steps)
    return schedules[options.schedule]


def _optimizer(options: Namespace, schedule: Schedule) -> training.Transform:
    more = {"momentum": 0.9} if options.optimizer == "sgd" else {}
    maker: Any = OPTIMIZERS[options.optimizer]
    made: training.Transform = maker(schedule, weight_decay=options.weight_decay, **more)
    return made


def _log(path: str) -> training.Callback:
    writers = {".csv": training.csv_log, ".jsonl": training.jsonl_log}
    suffix = Path(path).suffix
    if suffix not in writers:
        raise ArgumentError("--log", "a file ending in .csv or .jsonl", path)
    try:
        open(path, "a").close()  # fail before the training and not after its first epoch
    except OSError as error:
        raise FileError(path, "a file that can be written", error.strerror) from None
    return writers[suffix](path)
