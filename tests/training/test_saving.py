"""Saving: what cannot be saved, and a file that is written whole or not at all."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from support.files import linear, whole

from gbnn import layers, semirings, topology, training
from gbnn.errors import ArgumentError, FileError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Layer
from gbnn.training import State, load, save
from gbnn.weights import Weights

# -- What cannot be saved ------------------------------------------------------------------------------------


class Unwritable(layers.Relu):
    def config(self) -> dict[str, Any]:
        return {"thing": object()}


class Mine(np.random.PCG64):
    pass


MINE = np.random.Generator(Mine(1))


def nan_in(model: Layer, name: str, value: float = np.nan) -> Layer:
    p = (model.parameters() | model.buffers())[name]
    if isinstance(p, Weights):
        p.assign(np.where(np.arange(p.nnz) == 3, value, p.values))
    else:
        p[0] = value
    return model


def state_of(model: Layer, **changes: Any) -> State:
    state = State.start(model, training.adam(), changes.pop("seed", 0))
    for name, value in changes.items():
        setattr(state, name, value)
    return state


def small() -> layers.Chain:
    return layers.Chain(linear(), layers.BatchNorm(6), layers.Dense.random(6, 2))


def other_edges() -> layers.Chain:
    return layers.Chain(linear(nnz=9), *small()[1:])


@pytest.mark.parametrize(
    ("model", "options", "kind", "where"),
    [
        ("model", {}, KindError, "model"),
        (Unwritable(), {}, KindError, "model"),
        (small(), {"metadata": 5}, KindError, "metadata"),
        (small(), {"metadata": [("a", 1)]}, KindError, "metadata"),
        (small(), {"metadata": {"a": object()}}, KindError, "metadata"),
        (small(), {"metadata": {"a": {1, 2}}}, KindError, "metadata"),
        (small(), {"metadata": {(1, 2): 3}}, KindError, "metadata"),
        (small(), {"metadata": {"a": "x" * 60_000_000}}, ArgumentError, "metadata"),
        (small(), {"state": {}}, KindError, "state"),
        (small(), {"state": state_of(linear())}, ArgumentError, "state.slots"),
        (small(), {"state": state_of(other_edges())}, ArgumentError, "state.slots, "),
        (small(), {"state": state_of(small(), step=-1)}, ArgumentError, "state.step"),
        (small(), {"state": state_of(small(), seed=MINE)}, KindError, "state.generator"),
        (nan_in(small(), "0.weights"), {}, NonFiniteError, "0.weights"),
        (nan_in(small(), "0.weights", np.inf), {}, NonFiniteError, "0.weights"),
        (nan_in(small(), "0.bias"), {}, NonFiniteError, "0.bias"),
        (nan_in(small(), "0.bias", np.inf), {}, NonFiniteError, "0.bias"),
        (nan_in(small(), "1.mean"), {}, NonFiniteError, "1.mean"),
        (nan_in(small(), "2.weights", -np.inf), {}, NonFiniteError, "2.weights"),
        (nan_in(linear(semirings.min_plus), "bias"), {}, NonFiniteError, "bias"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved(
    model: Any, options: dict[str, Any], kind: type[GbnnError], where: str, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"old")
    with pytest.raises(kind, match=f"^{where}"):
        save(path, model, **options)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("part", ["edges", "layer"])
@pytest.mark.parametrize(
    "kept",
    [
        [1.0, 2.0],
        1.5,
        "text",
        {"a": 1},
        None,
        np.array([{}], dtype=object),
        np.array(["a"]),
        np.array([1j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.float64,
    ],
)
def test_memory_that_is_no_array_of_numbers(kept: Any, part: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"old")
    state = state_of(small(), memory={"0.weights": topology.Memory(**{part: {"mine": kept}})})
    with pytest.raises(KindError, match=rf"^state.memory of 0.weights, {part}, mine: expected an array of "):
        save(path, small(), state=state)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize(
    ("memory", "where"),
    [
        ({}, "state.memory, 0.weights: expected a Memory"),
        (topology.Memory(layer=[]), "state.memory of 0.weights, layer: expected a dict"),  # type: ignore[arg-type]
        (topology.Memory({1: np.ones(3)}), "state.memory of 0.weights, edges: expected names"),  # type: ignore[dict-item]
    ],
)
def test_memory_that_is_none(memory: Any, where: str, tmp_path: Path) -> None:
    with pytest.raises(KindError, match=f"^{where}"):
        save(tmp_path / "m", small(), state=state_of(small(), memory={"0.weights": memory}))
    assert not os.listdir(tmp_path)


def test_memory_of_other_edges(tmp_path: Path) -> None:
    state = state_of(small(), memory={"0.weights": topology.Memory({"mine": np.ones(1)})})
    with pytest.raises(ArgumentError, match=r"^state.memory of 0.weights, edges, mine: expected shape"):
        save(tmp_path / "m", small(), state=state)
    assert not os.listdir(tmp_path)


def test_a_circle_in_metadata(tmp_path: Path) -> None:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    with pytest.raises(KindError, match=r"^metadata: "):
        save(tmp_path / "m", layers.Relu(), metadata=circle)


# -- Written whole or not at all -----------------------------------------------------------------------------


def test_the_mode_is_that_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for mask in (0o022, 0o077, 0o002):
            os.umask(mask)
            path = tmp_path / f"m{mask}"
            save(path, layers.Relu())
            (tmp_path / "usual").write_text("")
            assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)
            assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
            (tmp_path / "usual").unlink()
    finally:
        os.umask(before)


def test_nothing_else_is_left(tmp_path: Path) -> None:
    for _ in range(3):
        save(tmp_path / "m", small())
    assert os.listdir(tmp_path) == ["m"]


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def half_written(tensors: Any, filename: Any, metadata: Any = None) -> None:
    Path(filename).write_bytes(safetensors.numpy.save(tensors, metadata)[:100])
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("target", "name", "replacement", "expected"),
    [
        (safetensors.numpy, "save_file", half_written, FileError),
        (safetensors.numpy, "save_file", failing(safetensors.SafetensorError("I/O error")), FileError),
        (safetensors.numpy, "save_file", failing(MemoryError()), MemoryError),
        (safetensors.numpy, "save_file", failing(KeyboardInterrupt()), KeyboardInterrupt),
        (os, "fsync", failing(OSError(5, "Input/output error")), FileError),
        (os, "chmod", failing(PermissionError(1, "Operation not permitted")), FileError),
        (os, "replace", failing(OSError(18, "Cross-device link")), FileError),
        (os, "replace", failing(KeyboardInterrupt()), KeyboardInterrupt),
    ],
)
def test_a_failing_save_leaves_the_old_file(
    target: Any, name: str, replacement: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m"
    save(path, small())
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(target, name, replacement)
        with pytest.raises(expected) as caught:
            save(path, linear())
    if expected is FileError:
        assert str(caught.value).startswith(f"{path}: expected a file that can be written, got ")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    """For real: the system refuses to write beyond a size."""
    path = tmp_path / "m"
    save(path, small())
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(FileError, match="a file that can be written"):
            save(path, layers.Dense.random(100, 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    save(tmp_path / "m", small())
    before = (tmp_path / "m").read_bytes()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(FileError, match="Permission denied"):
            save(tmp_path / "m", linear())
    finally:
        tmp_path.chmod(0o700)
    assert (tmp_path / "m").read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_paths_where_no_file_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    for path in ("none/m", "file/m", "folder", "x" * 300, "a\0b", "."):
        with pytest.raises(FileError, match="a file that can be written"):
            save(tmp_path / path, small())
    for path in (5, None, b"m"):
        with pytest.raises(KindError, match=r"^path: expected "):
            save(path, small())
        with pytest.raises(KindError, match=r"^path: expected "):
            load(path)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert os.listdir(tmp_path / "folder") == []


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("ü" + "x" * 253)
    save(path, small())
    assert whole(load(path)) == whole(small())
