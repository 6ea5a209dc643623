"""Files that are damaged, foreign or made up: a `FileError` each, or a model that works."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from gbnn import layers, semirings, training
from gbnn.errors import FileError, GbnnError
from gbnn.layers import Layer
from gbnn.training import State, container, load, load_all, save

Array = np.ndarray[Any, Any]
Header = dict[str, Any]

PAIRS = [(np.random.default_rng(0).uniform(0.1, 1, (4, 6)), np.array([0, 1, 1, 0]))]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of many kinds of layers, with the state of a training that has begun."""
    path = tmp_path_factory.mktemp("good") / "m"
    model = layers.Chain(
        layers.Linear.random(6, 6, nnz=20, seed=1),
        layers.LeakyRelu(0.25),
        layers.BatchNorm(6),
        layers.Dropout(0.25, 7),
        layers.Residual(layers.Chain(layers.Linear.random(6, 6, nnz=30, semiring=semirings.min_plus))),
        layers.Dense.random(6, 2),
    )
    for step in training.train(model, PAIRS, optimizer=training.adam(), epochs=3):
        save(path, model, state=step.state, metadata={"classes": ["a", "b"]})
    return path


def parts(path: Path) -> tuple[dict[str, Array], Header]:
    tensors, text = container.read(path)
    del tensors[container.CHECKSUM]
    return tensors, json.loads(text)


def refused(path: Path) -> FileError:
    with pytest.raises(FileError) as caught:
        load_all(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value).strip()
    return caught.value


def positions(size: int) -> Iterator[int]:
    yield from range(min(size, 24))
    yield from range(24, size, max(1, size // 150))
    yield from range(size - 24, size)


def test_truncated(good: Path, tmp_path: Path) -> None:
    whole, path = good.read_bytes(), tmp_path / "m"
    for size in positions(len(whole)):
        path.write_bytes(whole[:size])
        refused(path)
    path.write_bytes(whole + b"\0")
    refused(path)
    path.write_bytes(whole)
    load_all(path)


def test_any_flipped_bit(good: Path, tmp_path: Path) -> None:
    whole, path = np.frombuffer(good.read_bytes(), dtype=np.uint8), tmp_path / "m"
    rng = np.random.default_rng(0)
    for position in {*positions(whole.size), *rng.integers(whole.size, size=300).tolist()}:
        flipped = whole.copy()
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped.tobytes())
        refused(path)


def test_any_bytes_overwritten(good: Path, tmp_path: Path) -> None:
    whole, path = np.frombuffer(good.read_bytes(), dtype=np.uint8), tmp_path / "m"
    rng = np.random.default_rng(1)
    for _ in range(150):
        start, length = int(rng.integers(whole.size)), int(rng.integers(1, 200))
        other = whole.copy()
        fill = rng.integers(256, size=length, dtype=np.uint8)[: whole.size - start]
        other[start : start + length] = fill
        if not np.array_equal(other, whole):
            path.write_bytes(other.tobytes())
            refused(path)


def test_damage_is_called_damage(good: Path, tmp_path: Path) -> None:
    """A bit inside a value gives a fine model, but not the one that was saved."""
    whole = bytearray(good.read_bytes())
    value = parts(good)[0]["model/5.weights"]
    at = whole.find(value.tobytes())
    assert at > 0
    whole[at + 1] ^= 1
    (tmp_path / "m").write_bytes(whole)
    assert "damaged" in str(refused(tmp_path / "m"))


def pickled(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([{}]), allow_pickle=True)


HUGE = {"dtype": "U8", "shape": [2**62], "data_offsets": [0, 2**62]}

FOREIGN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: None, "a file, got none there"),
    "folder": (lambda path: path.mkdir(), "a file, got a folder"),
    "empty": (lambda path: path.write_bytes(b""), "a whole safetensors file"),
    "text": (lambda path: path.write_text("# Hello\n" * 20), "a whole safetensors file"),
    "npy": (pickled, "a whole safetensors file"),
    "zeros": (lambda path: path.write_bytes(bytes(1000)), "a whole safetensors file"),
    "a header of 2**64 bytes": (lambda path: path.write_bytes(b"\xff" * 1000), "a whole safetensors file"),
    "a header of 90 MB": (
        lambda path: path.write_bytes((90_000_000).to_bytes(8, "little") + b"{}"), "a whole safetensors file"
    ),
    "an array of 2**62 bytes": (
        lambda path: path.write_bytes(raw({"a": HUGE})),
        "a whole safetensors file",
    ),
    "nothing": (lambda path: path.write_bytes(raw({})), "something else"),
    "another's": (lambda path: safetensors.numpy.save_file({"a": np.ones(3)}, path), "something else"),
    "another's with metadata": (
        lambda path: safetensors.numpy.save_file({"a": np.ones(3)}, path, {"format": "pt"}), "something else"
    ),
    "no JSON": (lambda path: container.write(path, {}, "version 1"), "a model saved by gbnn"),
    "a JSON list": (lambda path: container.write(path, {}, "[1]"), "a model saved by gbnn"),
    "JSON null": (lambda path: container.write(path, {}, "null"), "a model saved by gbnn"),
    "an empty header": (lambda path: container.write(path, {}, "{}"), "a model saved by gbnn"),
    "no checksum": (
        lambda path: safetensors.numpy.save_file({"a": np.ones(3)}, path, {"gbnn": '{"version": 1}'}),
        "a model saved by gbnn",
    ),
    "deep JSON": (lambda path: container.write(path, {}, "[" * 10**6), "a model saved by gbnn"),
    "a deep model": (lambda path: container.write(path, {}, nested(5000)), "a model saved by gbnn"),
    "a number of a million digits": (
        lambda path: container.write(path, {}, f'{{"version": {"1" * 10**6}}}'), "a model saved by gbnn"
    ),
}  # fmt: skip


def raw(header: Header) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def nested(depth: int) -> str:
    before = '{"kind": "Chain", "config": {}, "arrays": [], "children": {"0": '
    inner = '{"kind": "Relu", "config": {}, "arrays": [], "children": {}}'
    model = before * depth + inner + "}}" * depth
    return f'{{"version": 1, "state": null, "metadata": {{}}, "model": {model}}}'


@pytest.mark.parametrize(("write", "words"), FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files(write: Callable[[Path], Any], words: str, tmp_path: Path) -> None:
    write(tmp_path / "m")
    assert words in str(refused(tmp_path / "m"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read(good: Path, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(good.read_bytes())
    (tmp_path / "m").chmod(0)
    assert "got Permission denied" in str(refused(tmp_path / "m"))


def test_paths_that_are_none() -> None:
    for path in ("a\0b", "x" * 300):
        with pytest.raises(FileError, match="expected a file, got "):
            load(path)


def test_a_model_of_some_depth_is_none_too_deep(tmp_path: Path) -> None:
    container.write(tmp_path / "m", {}, nested(50))
    assert len(list(load(tmp_path / "m").walk())) == 51


# Each edit of a good file leaves a whole file with a right checksum, that makes no model all the same.
W, V = "model/0.weights", "model/4.0.0.weights"
Edit = Callable[[dict[str, Array], Header], Any]


def put(name: str, *at: int | slice, value: Any) -> Edit:
    def edit(tensors: dict[str, Array], header: Header) -> None:
        tensors[name][at] = value

    return edit


def swap(name: str, a: int, b: int) -> Edit:
    def edit(tensors: dict[str, Array], header: Header) -> None:
        tensors[name][[a, b]] = tensors[name][[b, a]]

    return edit


def become(name: str, make: Callable[[Array], Any]) -> Edit:
    def edit(tensors: dict[str, Array], header: Header) -> None:
        tensors[name] = np.asarray(make(tensors[name]))

    return edit


def without(name: str) -> Edit:
    return lambda tensors, header: tensors.pop(name)


def overflowing(tensors: dict[str, Array], header: Header) -> None:
    """Starts whose differences, wrapped around 2**64, look like counts of edges."""
    steps = np.array([0, 2**62, 2**63, 2**63 + 2**62, 20], dtype=np.uint64)
    tensors[f"{W}/starts"] = steps.view(np.int64)
    tensors[f"{W}/sources"] = np.arange(4)


def head(*path: str, value: Any) -> Edit:
    def edit(tensors: dict[str, Array], header: Header) -> None:
        place = header
        for key in path[:-1]:
            place = place[key]
        if value is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = value

    return edit


def child(k: int, *path: str, value: Any) -> Edit:
    return head("model", "children", str(k), *path, value=value)


def children(of: str | None = None, **names: str) -> Edit:
    """Give the model (or that layer of it) as children what are the named layers of the model now."""

    def edit(tensors: dict[str, Array], header: Header) -> None:
        there = header["model"]["children"]
        holder = header["model"] if of is None else there[of]
        holder["children"] = {name.strip("_"): there[old] for name, old in names.items()}

    return edit


EDITS: dict[str, tuple[Edit, str]] = {
    "target too large": (put(f"{W}/targets", 3, value=6), "indices from 0 to 5, got 6"),
    "target negative": (put(f"{W}/targets", 3, value=-1), "indices from 0 to 5, got -1"),
    "target absurd": (become(f"{W}/targets", lambda a: a.astype(np.int64) + 2**62), "indices from 0 to 5"),
    "source too large": (put(f"{W}/sources", -1, value=6), "indices from 0 to 5, got 6"),
    "source negative": (put(f"{W}/sources", 0, value=-7), "indices from 0 to 5, got -7"),
    "sources out of order": (swap(f"{W}/sources", 0, 1), "out of order"),
    "a source twice": (put(f"{W}/sources", 0, value=1), "each edge once|out of order"),
    "targets out of order": (swap(f"{W}/targets", 0, 1), "out of order"),
    "an edge twice": (become(f"{W}/targets", lambda a: np.r_[a[1:2], a[1:]]), "each edge once"),
    "starts from 1": (put(f"{W}/starts", 0, value=1), "that fit together"),
    "starts beyond the end": (put(f"{W}/starts", -1, value=21), "that fit together"),
    "starts before the end": (put(f"{W}/starts", -1, value=19), "that fit together"),
    "starts that fall": (swap(f"{W}/starts", 1, 2), "that fit together"),
    "a source without edges": (lambda t, h: t[f"{W}/starts"].__setitem__(1, 0), "that fit together"),
    "starts too few": (become(f"{W}/starts", lambda a: a[:-1]), "that fit together"),
    "starts too many": (become(f"{W}/starts", lambda a: np.r_[a, a[-1:]]), "that fit together"),
    "starts none": (become(f"{W}/starts", lambda a: a[:0]), "that fit together"),
    "starts that overflow": (overflowing, "that fit together"),
    "sources none": (become(f"{W}/sources", lambda a: a[:0]), "that fit together"),
    "targets too few": (become(f"{W}/targets", lambda a: a[:-1]), "that fit together"),
    "sources of float": (become(f"{W}/sources", lambda a: a.astype(np.float32)), "1-D array of int32"),
    "targets unsigned": (become(f"{W}/targets", lambda a: a.astype(np.uint64)), "1-D array of int32"),
    "targets of int8": (become(f"{W}/targets", lambda a: a.astype(np.int8)), "1-D array of int32"),
    "targets in 2-D": (become(f"{W}/targets", lambda a: a[:, None]), "1-D array of int32"),
    "targets in 0-D": (become(f"{W}/targets", lambda a: a[0]), "1-D array of int32"),
    "values too few": (become(f"{W}/values", lambda a: a[:-1]), "values"),
    "values in 2-D": (become(f"{W}/values", lambda a: a[:, None]), "values"),
    "values in 0-D": (become(f"{W}/values", lambda a: a[0]), "values"),
    "values NaN": (put(f"{W}/values", 4, value=np.nan), "finite numbers"),
    "values infinite": (put(f"{W}/values", 4, value=-np.inf), "finite numbers"),
    "values of int": (become(f"{W}/values", lambda a: a.astype(np.int32)), "float32 or float64"),
    "values of float16": (become(f"{W}/values", lambda a: a.astype(np.float16)), "float32 or float64"),
    "values of bool": (become(f"{W}/values", lambda a: a > 0), "float32 or float64"),
    "values of the other dtype": (become(f"{W}/values", lambda a: a.astype(float)), "0.Linear, bias"),
    "shape 0": (put(f"{W}/shape", 1, value=0), "integer between 1 and"),
    "shape negative": (put(f"{W}/shape", 0, value=-6), "integer between 1 and"),
    "shape absurd": (put(f"{W}/shape", 0, value=2**62), "integer between 1 and"),
    "shape too small": (put(f"{W}/shape", 0, value=5), "indices from 0 to 4"),
    "shape of another width": (put(f"{W}/shape", 1, value=7), "shape"),
    "shape 1-D": (become(f"{W}/shape", lambda a: a[:1]), "that fit together"),
    "shape 3-D": (become(f"{W}/shape", lambda a: np.r_[a, 6]), "that fit together"),
    "shape of float": (become(f"{W}/shape", lambda a: a.astype(float)), "1-D array of int32"),
    "an inner layer's target": (put(f"{V}/targets", 0, value=99), "indices from 0 to 5, got 99"),
    "an inner layer's width": (put(f"{V}/shape", 1, value=2**60), "2"),
    "edges as a full array": (lambda t, h: t.__setitem__(W, np.ones((6, 6), np.float32)), "weights"),
    **{f"no {part}": (without(f"{W}/{part}"), "got none") for part in ("sources", "starts", "targets")},
    "no shape": (without(f"{W}/shape"), "got none"),
    "no values": (without(f"{W}/values"), "got none"),
    "no bias": (without("model/0.bias"), "got none"),
    "no running mean": (without("model/2.mean"), "got none"),
    "bias too short": (become("model/0.bias", lambda a: a[:-1]), "bias"),
    "bias in 2-D": (become("model/0.bias", lambda a: a[None]), "bias"),
    "bias NaN": (put("model/0.bias", 2, value=np.nan), "finite numbers"),
    "bias infinite": (put("model/0.bias", 2, value=np.inf), "finite numbers"),
    "bias of a min_plus layer NaN": (put("model/4.0.0.bias", 2, value=np.nan), "finite numbers"),
    "bias of int": (become("model/0.bias", lambda a: a.astype(int)), "0.Linear, bias: expected float32"),
    "running variance NaN": (put("model/2.variance", 1, value=np.nan), "finite numbers"),
    "running mean too long": (become("model/2.mean", lambda a: np.r_[a, a]), "features"),
    "running mean of float64": (become("model/2.mean", lambda a: a.astype(float)), "float64"),
    "full weights in 1-D": (become("model/5.weights", lambda a: a[0]), "weights"),
    "full weights of 0 rows": (become("model/5.weights", lambda a: a[:0]), "weights"),
    "full weights NaN": (put("model/5.weights", 0, 1, value=np.nan), "finite numbers"),
    "full weights infinite": (put("model/5.weights", 0, 1, value=np.inf), "finite numbers"),
    "full weights of int": (become("model/5.weights", lambda a: a.astype(int)), "float32 or float64"),
    "full weights transposed": (become("model/5.weights", lambda a: a.T.copy()), "expected"),
    "a slot too short": (become("slots/0.weights/square", lambda a: a[:-1]), "as its parameter"),
    "a slot of float64": (become("slots/0.weights/square", lambda a: a.astype(float)), "as its parameter"),
    "a slot NaN": (put("slots/5.weights/momentum", 0, 0, value=np.nan), "finite numbers"),
    "a newer version": (head("version", value=2), "version: expected 1: another gbnn made this file, got 2"),
    "a version of text": (head("version", value="1"), "version"),
    "no version": (head("version", value=...), "KeyError"),
    "no model": (head("model", value=None), "a kind of gbnn.layers"),
    "a model of text": (head("model", value="Chain"), "a kind of gbnn.layers"),
    "an unknown kind": (child(1, "kind", value="Swish"), "got Swish"),
    "the abstract kind": (child(1, "kind", value="Layer"), "TypeError"),
    "no kind of layer": (child(1, "kind", value="he"), "got he"),
    "a kind that is a list": (child(1, "kind", value=["Relu"]), "TypeError"),
    "a kind that is no text": (child(1, "kind", value=5), "got 5"),
    "another kind": (child(0, "kind", value="Dense"), "Dense"),
    "kind Linear of a full array": (child(5, "kind", value="Linear"), "Linear"),
    "no children": (head("model", "children", value={}), "at least one layer"),
    "children in a list": (head("model", "children", value=[]), "AttributeError"),
    "children out of order": (children(_0="0", _2="2", _1="1", _3="3", _4="4", _5="5"), "the children"),
    "a child too many": (
        children(_0="0", _1="1", _2="2", _3="3", _4="4", _5="5", _7="1"), "the children"
    ),
    "a child too few": (child(5, value=...), "only those of the model"),
    "a slot of no parameter": (
        lambda t, h: t.__setitem__("slots/1.weights/square", np.ones(1)), "only those of the model"
    ),
    "an inner child too many": (children(of="4", _0="1", _1="1"), "TypeError"),
    "no config": (child(1, "config", value=...), "KeyError"),
    "config null": (child(1, "config", value=None), "TypeError"),
    "config of another": (child(1, "config", value={"rate": 1}), "TypeError"),
    "slope out of range": (child(1, "config", "slope", value=-1), "slope"),
    "slope absurd": (child(1, "config", "slope", value=10**400), "slope"),
    "slope text": (child(1, "config", "slope", value="0.2"), "slope"),
    "features absurd": (child(2, "config", "features", value=10**13), "features"),
    "features negative": (child(2, "config", "features", value=-6), "features"),
    "features text": (child(2, "config", "features", value="6"), "features"),
    "epsilon zero": (child(2, "config", "epsilon", value=0), "epsilon"),
    "dtype of int": (child(2, "config", "dtype", value="int32"), "dtype"),
    "dtype nothing": (child(2, "config", "dtype", value={"a": 1}), "dtype"),
    "dropout of 1": (child(3, "config", "rate", value=1.0), "rate"),
    "dropout state of text": (child(3, "config", "state", value="PCG64"), "state"),
    "dropout state empty": (child(3, "config", "state", value={}), "state"),
    "dropout state absurd": (child(3, "config", "state", "state", "inc", value=2**200), "state"),
    "no semiring": (child(0, "config", value={}), "semiring"),
    "a semiring of text": (child(0, "config", "semiring", value="plus_times"), "Semiring"),
    "an unknown semiring": (child(0, "config", "semiring", value={"semiring": "plus_plus"}), "got plus_plus"),
    "a semiring that is a list": (child(0, "config", "semiring", value={"semiring": []}), "TypeError"),
    "no arrays": (child(0, "arrays", value=[]), "weights"),
    "arrays null": (child(0, "arrays", value=None), "TypeError"),
    "arrays of numbers": (child(0, "arrays", value=[1, 2]), "names"),
    "arrays of others": (child(0, "arrays", value=["weights", "slope"]), "got none"),
    "another's arrays": (child(1, "arrays", value=["../0.weights"]), "got none"),
    "no state": (head("state", value=...), "KeyError"),
    "state of text": (head("state", value="x"), "TypeError"),
    "step negative": (head("state", "step", value=-1), "step"),
    "step a float": (head("state", "step", value=1.5), "step"),
    "step absurd": (head("state", "step", value=10**300), "step"),
    "no generator": (head("state", "generator", value=None), "TypeError"),
    "an unknown generator": (head("state", "generator", "bit_generator", value="XORShift"), "KeyError"),
    "another's generator state": (head("state", "generator", "bit_generator", value="MT19937"), "Error"),
    "a generator state absurd": (head("state", "generator", "state", value={"state": -1, "inc": 0}), "Error"),
    "no metadata": (head("metadata", value=...), "KeyError"),
    "metadata a number": (head("metadata", value=3), "TypeError"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "words"), EDITS.values(), ids=EDITS.keys())
def test_files_that_make_no_model(edit: Edit, words: str, good: Path, tmp_path: Path) -> None:
    tensors, header = parts(good)
    edit(tensors, header)
    container.write(tmp_path / "m", tensors, json.dumps(header))
    message = str(refused(tmp_path / "m"))
    assert any(word in message for word in words.split("|")), message


def test_short_generator_states(tmp_path: Path) -> None:
    model, rng = layers.Relu(), np.random.Generator(np.random.MT19937(1))
    save(tmp_path / "m", model, state=State.start(model, training.adam(), rng))
    tensors, header = parts(tmp_path / "m")
    header["state"]["generator"]["state"]["key"] = [1, 2, 3]
    container.write(tmp_path / "m", tensors, json.dumps(header))
    refused(tmp_path / "m")


def is_valid(model: Layer, state: State | None) -> None:
    """A model that can be used: its forward pass gives an answer or a gbnn error, and so does training."""
    model.describe()
    with contextlib.suppress(GbnnError):
        assert model.forward(PAIRS[0][0])[0].shape[0] == 4
    with contextlib.suppress(GbnnError):
        list(training.train(model, PAIRS, state=state))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from([2**31, 2**63, -(2**63), 10**400, "Chain", "Relu", "Linear", "0", "weights"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as (container, key)."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [place for key, value in items for place in [(tree, key), *places(value)]]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draws=st.data())
def test_any_header(draws: st.DataObject, good: Path, tmp_path: Path) -> None:
    tensors, header = parts(good)
    for _ in range(draws.draw(st.integers(1, 2))):
        holder, key = draws.draw(st.sampled_from(places(header)))
        if draws.draw(st.booleans()):
            holder[key] = draws.draw(JSON)
        else:
            holder[key] = copy.deepcopy(draws.draw(st.sampled_from(places(header))))[0]
    container.write(tmp_path / "m", tensors, json.dumps(header))
    try:
        saved = load_all(tmp_path / "m")
    except FileError:
        return
    is_valid(saved.model, saved.state)


NUMBERS = st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]).flatmap(
    lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=7))
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draws=st.data())
def test_any_arrays(draws: st.DataObject, good: Path, tmp_path: Path) -> None:
    tensors, header = parts(good)
    name = draws.draw(st.sampled_from(sorted(tensors)))
    if draws.draw(st.booleans()):
        tensors[name] = draws.draw(NUMBERS)
    else:
        old = tensors[name].reshape(-1)
        entry = st.integers(-1, 21) if old.dtype.kind == "i" else st.floats(width=32)
        for _ in range(draws.draw(st.integers(1, 3))):
            old[draws.draw(st.integers(0, old.size - 1))] = draws.draw(entry)
    container.write(tmp_path / "m", tensors, json.dumps(header))
    try:
        saved = load_all(tmp_path / "m")
    except FileError:
        return
    is_valid(saved.model, saved.state)
