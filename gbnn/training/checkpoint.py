"""Models in files: one safetensors file, never pickle; written whole or not at all, checked when read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, FileError, GbnnError, KindError, check_finite, check_int
from gbnn.layers import Dense, Layer, Linear
from gbnn.topology import Memory
from gbnn.training import container
from gbnn.training.blueprint import Blueprint, array_names, describe, known_things, rebuild
from gbnn.training.state import State, check_model
from gbnn.weights import Weights

__all__ = ["Saved", "load", "load_all", "save"]

Array = np.ndarray[Any, Any]

VERSION = 1
PARTS = ("sources", "starts", "targets")
"""Arrays of a layer's edges: the sources that have any, where the edges of each start, their targets."""

STORED = [np.dtype(code) for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
"""Kinds of arrays in a file."""

BIT_GENERATORS = {
    kind.__name__: kind
    for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
}


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
    NonFiniteError
        If a parameter is NaN, or infinite where that means nothing: `load` would refuse it.
    ArgumentError, KindError
        If the model or the metadata cannot be described as JSON, or the state is of another model.

    Notes
    -----
    The same model and state give the same bytes.

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
    check_model(model)
    tensors: dict[str, Array] = {}
    for prefix, layer in model.walk():
        for key, value in (layer.own_parameters() | layer.own_buffers()).items():
            name = f"{prefix}.{key}" if prefix else key
            _check_numbers(name, layer, value)
            tensors |= _packed(f"model/{name}", value)
    header: dict[str, Any] = {"version": VERSION, "model": describe(model), "state": None}
    if state is not None:
        _check_state(state, model)
        header["state"] = {"step": state.step, "generator": state.generator.bit_generator.state}
        for name, slots in state.slots.items():
            tensors |= {f"slots/{name}/{slot}": array for slot, array in slots.items()}
        for name, memory in state.memory.items():
            for part in ("edges", "layer"):
                kept = getattr(memory, part)
                tensors |= {f"memory/{name}/{part}/{key}": kept[key] for key in kept}
    _json("model", header)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise KindError("metadata", "a mapping", type(metadata).__name__)
    header["metadata"] = {} if metadata is None else dict(metadata)
    container.write(path, tensors, _json("metadata", header))


def _json(where: str, header: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} {value!r}")

    try:
        return json.dumps(header, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise KindError(where, "values that JSON can hold", error) from None


def _check_numbers(name: str, layer: Layer, value: Weights | Array) -> None:
    """Raise where `load` would: on NaN, and on infinity where it stands for nothing."""
    array = value.values if isinstance(value, Weights) else value
    finite = isinstance(layer, Dense) or (isinstance(layer, Linear) and np.isfinite(layer.semiring.identity))
    if finite or isinstance(value, Weights) or _has_nan(array):
        check_finite(name, array)


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and array.size > 0 and bool(np.isnan(array.min()))


def _check_state(state: Any, model: Layer) -> None:
    """Raise unless this is a state of this model's training, that a file can hold."""
    if not isinstance(state, State):
        raise KindError("state", "a State, such as Step.state", type(state).__name__)
    check_int("state.step", state.step, 0, 2**63 - 1)
    generator = state.generator.bit_generator.state["bit_generator"]
    if generator not in BIT_GENERATORS:
        raise KindError("state.generator", f"one of {', '.join(BIT_GENERATORS)}", generator)
    parameters = model.parameters()
    if state.slots.keys() != parameters.keys():
        raise ArgumentError("state.slots", f"those of {sorted(parameters)}", sorted(state.slots))
    for name, slots in state.slots.items():
        parameter = parameters[name]
        for slot, array in slots.items():
            where = f"state.slots, {slot} of {name}"
            wanted = (parameter.nnz,) if isinstance(parameter, Weights) else parameter.shape
            if (array.shape, array.dtype) != (wanted, parameter.dtype):
                expected = f"shape {wanted}, {parameter.dtype}, as its parameter"
                raise ArgumentError(where, expected, f"{array.shape}, {array.dtype}")
            if _has_nan(array):
                check_finite(where, array)
    for name, memory in state.memory.items():
        if not isinstance(weights := parameters.get(name), Weights):
            raise ArgumentError("state.memory", f"layers with edges, of {sorted(parameters)}", name)
        if not isinstance(memory, Memory):
            raise KindError(f"state.memory, {name}", "a Memory", type(memory).__name__)
        for part in ("edges", "layer"):
            _check_arrays(f"state.memory of {name}, {part}", getattr(memory, part))
        for key, array in memory.edges.items():
            if array.shape != (weights.nnz,):
                where = f"state.memory of {name}, edges, {key}"
                raise ArgumentError(where, f"shape {(weights.nnz,)}, one an edge", array.shape)


def _check_arrays(where: str, kept: Any) -> None:
    """Raise unless these are named arrays that a file can hold: no objects, strings or dates."""
    if not isinstance(kept, dict):
        raise KindError(where, "a dict of arrays", type(kept).__name__)
    for key, array in kept.items():
        if not isinstance(key, str):
            raise KindError(where, "names as keys", repr(key))
        if not isinstance(array, np.ndarray | np.generic):
            raise KindError(f"{where}, {key}", "an array of numbers", type(array).__name__)
        if array.dtype.newbyteorder("=") not in STORED:
            kinds = ", ".join(str(dtype) for dtype in STORED)
            raise KindError(f"{where}, {key}", f"an array of {kinds}", f"one of {array.dtype}")


def _packed(name: str, value: Weights | Array) -> dict[str, Array]:
    if not isinstance(value, Weights):
        return {name: value}
    parts = {part: _narrow(array) for part, array in zip(PARTS, value.edges.by_source, strict=True)}
    parts |= {"shape": np.array(value.shape, dtype=np.int64), "values": value.values}
    return {f"{name}/{part}": array for part, array in parts.items()}


def _narrow(indices: Array) -> Array:
    """Halve the file where 32 bits hold every index."""
    return indices.astype(np.int32) if indices.max(initial=0) < 2**31 else indices


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
        If the file is missing, truncated, damaged, foreign, of a newer version, or holds what makes no model:
        indices out of range or out of order, wrong shapes, NaN.

    Examples
    --------
    >>> import gbnn
    >>> gbnn.load("missing.safetensors")
    Traceback (most recent call last):
    gbnn.errors.FileError: missing.safetensors: expected a file, got none there
    """
    return load_all(path, known=known).model


def load_all(path: Any, *, known: Iterable[Any] = ()) -> Saved:
    """Load a model with the training state and metadata saved beside it; see `load`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gbnn import models, training
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.safetensors")
    ...     training.save(path, models.mlp([8, 20, 2], density=0.2), metadata={"classes": ["no", "yes"]})
    ...     training.load_all(path).metadata
    {'classes': ['no', 'yes']}
    """
    things = known_things(known)
    tensors, text = container.read(path)
    try:
        header = json.loads(text)
        if header["version"] != VERSION:
            raise ArgumentError("version", f"{VERSION}: another gbnn made this file", header["version"])
        stored = tensors.pop(container.CHECKSUM)
        if stored.tolist() != [container.checksum(text, tensors)]:
            raise ArgumentError("checksum", "that of the file when it was written", "another: it is damaged")
        blueprint = Blueprint.parse(header["model"], things)
        names = array_names(blueprint, tensors)
        model = rebuild(blueprint, {name: _unpacked(f"model/{name}", tensors) for name in names})
        state = None if header["state"] is None else _state(header["state"], model, tensors)
        if tensors:
            raise ArgumentError("arrays", "only those of the model and its state", sorted(tensors))
        return Saved(model, state, dict(header["metadata"]))
    except GbnnError as error:
        raise FileError(f"{path}, {error.where}", error.expected, error.got) from None
    except Exception as error:  # a header of anything JSON can hold, and constructors that trust it
        raise FileError(str(path), "a model saved by gbnn", f"{type(error).__name__}: {error}") from error


def _taken(name: str, tensors: dict[str, Array]) -> Array:
    if name not in tensors:
        raise ArgumentError(name, "this array", "none of that name")
    return tensors.pop(name)


def _unpacked(name: str, tensors: dict[str, Array]) -> Weights | Array:
    if name in tensors:
        array = tensors.pop(name)
        if _has_nan(array):
            check_finite(name, array)
        return array
    ids, starts, targets, shape = (_index(f"{name}/{part}", tensors) for part in (*PARTS, "shape"))
    values = _taken(f"{name}/values", tensors)
    fits = starts.size == ids.size + 1 and (starts[0], starts[-1]) == (0, targets.size)
    # Compared, not subtracted: a difference of absurd numbers may overflow and look right.
    fits = fits and not (starts[1:] <= starts[:-1]).any()
    if not fits or values.shape != targets.shape or shape.size != 2:
        raise ArgumentError(name, "sources, starts, targets, values and a shape that fit together", "others")
    sources = np.repeat(ids, np.diff(starts))
    size = int(shape[0]), int(shape[1])
    weights = Weights.from_coo(sources, targets, values, size, dtype=values.dtype)
    if not (np.array_equal(weights.sources, sources) and np.array_equal(weights.targets, targets)):
        raise ArgumentError(name, "edges ordered by source, then target", "edges out of order")
    return weights


def _index(name: str, tensors: dict[str, Array]) -> Array:
    array = _taken(name, tensors)
    if array.dtype not in (np.int32, np.int64) or array.ndim != 1:
        raise ArgumentError(name, "a 1-D array of int32 or int64", f"{array.dtype}, shape {array.shape}")
    return array.astype(np.int64)


def _memory(model: Layer, tensors: dict[str, Array]) -> dict[str, Memory]:
    memory: dict[str, Memory] = {}
    for name in model.parameters():
        for part in ("edges", "layer"):
            prefix = f"memory/{name}/{part}/"
            for key in [key for key in tensors if key.startswith(prefix)]:
                kept = memory.setdefault(name, Memory())
                getattr(kept, part)[key.removeprefix(prefix)] = tensors.pop(key).copy()
    return memory


def _state(header: dict[str, Any], model: Layer, tensors: dict[str, Array]) -> State:
    slots: dict[str, dict[str, Array]] = {}
    for name in model.parameters():
        prefix = f"slots/{name}/"
        own = [key for key in tensors if key.startswith(prefix)]
        slots[name] = {key.removeprefix(prefix): tensors.pop(key).copy() for key in own}
    generator = np.random.Generator(BIT_GENERATORS[header["generator"]["bit_generator"]]())
    generator.bit_generator.state = header["generator"]
    state = State(slots, check_int("step", header["step"], 0), generator, _memory(model, tensors))
    _check_state(state, model)
    return state
