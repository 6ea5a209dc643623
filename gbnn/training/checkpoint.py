"""Models in files: one safetensors file, never pickle; written whole or not at all, checked when read."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from gbnn.errors import ArgumentError, FileError, GbnnError, KindError
from gbnn.layers import Layer
from gbnn.semirings import Semiring
from gbnn.training.blueprint import Blueprint, array_names, describe, rebuild
from gbnn.training.state import State
from gbnn.weights import Weights

__all__ = ["Saved", "load", "load_all", "save"]

Array = np.ndarray[Any, Any]

FORMAT = "gbnn"
VERSION = 1


@dataclass
class Saved:
    """What a file holds.

    Attributes
    ----------
    model : Layer
    state : State or None
        The optimizer's slots, the step and the generator, if they were saved.
    metadata : dict
        The user's own JSON values.
    """

    model: Layer
    state: State | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def save(
    path: Any, model: Layer, *, state: State | None = None, metadata: Mapping[str, Any] | None = None
) -> None:
    """Save a model, and what training needs to go on, in one safetensors file.

    Parameters
    ----------
    path : str or Path
    model : Layer
    state : State, optional
        `Step.state`: the optimizer's slots, the step and the generator.
    metadata : mapping, optional
        Anything JSON can hold; comes back from `load_all`.

    Raises
    ------
    FileError
        If the file cannot be written. What stood at `path` before is then still there: the new file is
        written beside it and renamed when it is complete and on disk.
    ArgumentError, KindError
        If the model or the metadata cannot be described as JSON.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import gbnn
    >>> from gbnn import models
    >>> model = models.mlp([20, 50, 3], density=0.2, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.safetensors"
    ...     gbnn.save(path, model)
    ...     gbnn.load(path).nnz == model.nnz
    True
    """
    if not isinstance(model, Layer):
        raise KindError("model", "a gbnn Layer", type(model).__name__)
    tensors: dict[str, Array] = {}
    for name, value in (model.parameters() | model.buffers()).items():
        tensors |= _packed(f"model/{name}", value)
    header: dict[str, Any] = {"version": VERSION, "model": describe(model), "state": None}
    if state is not None:
        for name, slots in state.slots.items():
            tensors |= {f"slots/{name}/{slot}": array for slot, array in slots.items()}
        header["state"] = {
            "step": state.step,
            "generator": state.generator.bit_generator.state,
            "parameters": list(state.slots),
        }
    try:
        about = {"format": FORMAT, "gbnn": json.dumps(header), "metadata": json.dumps(dict(metadata or {}))}
    except (TypeError, ValueError) as error:
        raise KindError("metadata", "values that JSON can hold", error) from None
    # safetensors takes the memory as it lies: anything but C order would come back transposed.
    _write(Path(path), {name: np.ascontiguousarray(a) for name, a in tensors.items()}, about)


def _packed(name: str, value: Any) -> dict[str, Array]:
    if not isinstance(value, Weights):
        return {name: value}
    ids, starts, targets = value.edges.by_source
    parts = {"sources": ids, "starts": starts, "targets": targets}
    small = {f"{name}/{part}": _narrow(array) for part, array in parts.items()}
    return {**small, f"{name}/shape": np.array(value.shape, dtype=np.int64), f"{name}/values": value.values}


def _narrow(indices: Array) -> Array:
    """Halve the file where 32 bits hold every index."""
    return indices.astype(np.int32) if indices.max(initial=0) < 2**31 else indices


def _write(path: Path, tensors: dict[str, Array], about: dict[str, str]) -> None:
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        os.close(handle)
        safetensors.numpy.save_file(tensors, temporary, metadata=about)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes files only their owner can read; a saved model is an ordinary file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        temporary = None
    except (OSError, safetensors.SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(str(path), "a file that can be written", reason) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def load(path: Any, *, known: Iterable[Any] = ()) -> Layer:
    """Load a model.

    Parameters
    ----------
    path : str or Path
        A file that `save` wrote.
    known : iterable of Layer classes and Semirings
        The user's own, where the model uses any.

    Returns
    -------
    Layer

    Raises
    ------
    FileError
        If the file is missing, truncated, foreign, of a newer version, or holds what makes no model:
        indices out of range or out of order, wrong shapes, NaN.
    """
    return load_all(path, known=known).model


def load_all(path: Any, *, known: Iterable[Any] = ()) -> Saved:
    """Load a model with the training state and metadata saved beside it; see `load`."""
    tensors, about = _read(Path(path))
    try:
        header = json.loads(about["gbnn"])
        metadata = json.loads(about.get("metadata", "{}"))
        version = header["version"]
        if version != VERSION:
            raise FileError(str(path), f"format version {VERSION}", f"{version}: made by another gbnn")
        blueprint = Blueprint.parse(header["model"], known)
        arrays = {name: _unpacked(f"model/{name}", tensors) for name in array_names(blueprint, tensors)}
        model = rebuild(blueprint, arrays)
        state = None if header["state"] is None else _state(header["state"], model, tensors)
    except FileError:
        raise
    except GbnnError as error:
        raise FileError(f"{path}: {error.where}", error.expected, error.got) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise FileError(str(path), "a model saved by gbnn", f"{type(error).__name__}: {error}") from None
    return Saved(model, state, metadata if isinstance(metadata, dict) else {})


def _read(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            if about.get("format") != FORMAT or "gbnn" not in about:
                raise FileError(str(path), "a model saved by gbnn", "a safetensors file of something else")
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
    except FileNotFoundError:
        raise FileError(str(path), "a file", "none there") from None
    except IsADirectoryError:
        raise FileError(str(path), "a file", "a folder") from None
    except (OSError, safetensors.SafetensorError, ValueError, TypeError, KeyError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(str(path), "a whole safetensors file", error) from None


def _unpacked(name: str, tensors: dict[str, Array]) -> Weights | Array:
    if name in tensors:
        return tensors[name]
    ids, starts, targets = (
        _index(f"{name}/{part}", tensors[f"{name}/{part}"]) for part in ("sources", "starts", "targets")
    )
    shape = tuple(int(n) for n in _index(f"{name}/shape", tensors[f"{name}/shape"]))
    values = tensors[f"{name}/values"]
    counts = np.diff(starts)
    fits = starts.size == ids.size + 1 and starts[0] == 0 and starts[-1] == targets.size
    if not fits or (counts < 0).any() or len(shape) != 2:
        raise ArgumentError(name, "sources, starts and targets that fit together", "others")
    sources = np.repeat(ids, counts)
    weights = Weights.from_coo(sources, targets, values, shape, dtype=values.dtype)
    if not (np.array_equal(weights.sources, sources) and np.array_equal(weights.targets, targets)):
        raise ArgumentError(name, "edges ordered by source, then target", "edges out of order")
    return weights


def _index(name: str, array: Array) -> Array:
    if array.dtype not in (np.int32, np.int64) or array.ndim != 1:
        raise ArgumentError(name, "a 1-D array of int32 or int64", f"{array.dtype} {array.shape}")
    return array.astype(np.int64)


def _state(header: dict[str, Any], model: Layer, tensors: dict[str, Array]) -> State:
    parameters = model.parameters()
    slots: dict[str, dict[str, Array]] = {}
    for name in header["parameters"]:
        prefix = f"slots/{name}/"
        slots[name] = {key[len(prefix) :]: a for key, a in tensors.items() if key.startswith(prefix)}
        parameter = parameters[name]
        shape = (parameter.nnz,) if isinstance(parameter, Weights) else parameter.shape
        for slot, array in slots[name].items():
            if array.shape != shape:
                raise ArgumentError(f"{prefix}{slot}", f"shape {shape}, as its parameter", array.shape)
    rng = np.random.default_rng(0)
    kind = header["generator"]["bit_generator"]
    if kind != rng.bit_generator.state["bit_generator"]:
        bits = {c.__name__: c for c in (np.random.MT19937, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)}
        rng = np.random.Generator(bits[kind]())
    rng.bit_generator.state = header["generator"]
    return State(slots, int(header["step"]), rng)
