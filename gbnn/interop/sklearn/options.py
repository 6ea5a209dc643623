"""The parameters of an estimator, checked when it is fitted, as scikit-learn's convention has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_bool, check_float, check_int, check_list
from gbnn.interop.sklearn.network import Plan
from gbnn.layers import Layer, activation
from gbnn.topology import Rewirer

__all__ = ["Options", "checked"]


WIDEST = 2**31
"""Most neurons of a hidden layer: a bias is held for each."""


@dataclass(frozen=True)
class Options:
    """What `fit` needs to know."""

    plan: Plan
    learning_rate: float
    batch_size: int | None
    max_iter: int | None
    alpha: float
    label_smoothing: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    shuffle: bool
    verbose: bool
    rewirer: Rewirer | None

    def size_of_batch(self, rows: int) -> int:
        """Return the size of a batch: by default some fifty batches an epoch, of 16 to 64 rows, or 128."""
        most = 64 if rows < 2**15 else 128
        return min(rows, self.batch_size or min(most, max(16, rows // 50)))

    def epochs(self, rows: int, batches: int, *, many: bool) -> int:
        """Return how many epochs to train: by default 4 to 200, as many as make 1,200 steps.

        Of `many` features for the rows, which are soon known by heart, they are 3 to 10, as many as show
        400,000 rows, unless that makes less than 600 steps.
        """
        usual = min(200, max(4, math.ceil(1200 / batches)))
        if many:
            usual = min(200, max(3, min(10, round(400_000 / rows)), math.ceil(600 / batches)))
        return self.max_iter or usual


def checked(estimator: Any) -> Options:
    """Return the parameters of an estimator, or raise ArgumentError or KindError naming one."""
    p = estimator.get_params(deep=False)
    fan = p["edges_per_feature"]
    batch = p["batch_size"]
    check_bool("warm_start", p["warm_start"])
    return Options(
        plan=Plan(
            hidden=_hidden(p["hidden_layer_sizes"]),
            edges_per_feature=None if _is_auto(fan) else check_int("edges_per_feature", fan, 1),
            activation=_activation(p["activation"]),
            skip=check_bool("skip", p["skip"]),
            dropout=None if _is_auto(p["dropout"]) else _rate("dropout", p["dropout"]),
            input_dropout=None
            if _is_auto(p["input_dropout"])
            else _rate("input_dropout", p["input_dropout"]),
        ),
        learning_rate=check_float("learning_rate_init", p["learning_rate_init"], 0, open_low=True),
        batch_size=None if _is_auto(batch) else check_int("batch_size", batch, 1),
        max_iter=None if _is_auto(p["max_iter"]) else check_int("max_iter", p["max_iter"], 1),
        alpha=check_float("alpha", p["alpha"], 0),
        label_smoothing=_rate("label_smoothing", p.get("label_smoothing", 0.0)),
        early_stopping=check_bool("early_stopping", p["early_stopping"]),
        validation_fraction=_rate("validation_fraction", p["validation_fraction"], open_low=True),
        n_iter_no_change=check_int("n_iter_no_change", p["n_iter_no_change"], 1),
        tol=check_float("tol", p["tol"], 0),
        shuffle=check_bool("shuffle", p["shuffle"]),
        verbose=_verbose(p["verbose"]),
        rewirer=_rewirer(p["rewiring"]),
    )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _rate(name: str, value: Any, *, open_low: bool = False) -> float:
    rate = check_float(name, value, 0, 1, open_low=open_low)
    if rate == 1:
        raise ArgumentError(name, "a number below 1", rate)
    return rate


def _verbose(value: Any) -> bool:
    """Read a bool or, as scikit-learn has it, an int."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return check_int("verbose", value, 0) > 0


def _hidden(sizes: Any) -> list[int]:
    one = isinstance(sizes, int | np.integer)
    listed = [sizes] if one else check_list("hidden_layer_sizes", sizes, "widths of hidden layers")
    return [check_int("hidden_layer_sizes", size, 1, WIDEST) for size in listed]


def _rewirer(rewiring: Any) -> Rewirer | None:
    if callable(rewiring) and not isinstance(rewiring, Rewirer | type):
        rewiring = rewiring()
    if rewiring is not None and (not isinstance(rewiring, Rewirer) or isinstance(rewiring, type)):
        wanted = "None, a gbnn Rewiring, or a function that makes one"
        raise KindError("rewiring", wanted, type(rewiring).__name__)
    return rewiring


def _activation(named: Any) -> Callable[[], Layer]:
    if isinstance(named, str):
        activation(named)  # raises, with the names
        return lambda: activation(named)
    if not callable(named):
        raise KindError("activation", "a name, or a function that makes a layer", repr(named))

    def make() -> Layer:
        layer = named()
        if not isinstance(layer, Layer):
            raise KindError("activation", "a function that makes a layer", f"one of {type(layer).__name__}")
        return layer

    return make
