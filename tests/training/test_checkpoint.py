"""Files of models: what is loaded is what was saved, to the bit, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files import Array, linear, whole

import gbnn
from gbnn import data, layers, losses, models, semirings, topology, training
from gbnn.errors import FileError, KindError
from gbnn.layers import Layer
from gbnn.semirings import Semiring
from gbnn.training import State, load, load_all, save
from gbnn.training.state import model_dtype

# -- What is loaded is what was saved ------------------------------------------------------------------------


class Gain(Layer):
    """A layer of the user's own: a parameter of no dimension, a buffer of integers, settings."""

    def __init__(self, power: int, note: str = "") -> None:
        self.power, self.note = power, note
        self.gain: Array = np.array(0.1, dtype=np.float64)
        self.seen: Array = np.zeros(2, dtype=np.int64)

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        self.seen += (1, len(x)) if training else (0, 0)

        def pullback(dy: Array, *, inputs: bool = True) -> tuple[Array, dict[str, Any]]:
            return dy * self.gain, {"gain": np.array((dy * x).sum())}

        return x * self.gain.astype(x.dtype), pullback

    def own_parameters(self) -> dict[str, Any]:
        return {"gain": self.gain}

    def own_buffers(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def config(self) -> dict[str, Any]:
        return {"power": self.power, "note": self.note}


NORM4 = semirings.define(
    "norm4_times",
    add=lambda a, b: (a**4 + b**4) ** 0.25,
    identity=0.0,
    multiply=lambda x, w: x * w,
    partials=lambda x, w, y: ((x * w / y) ** 3 * w, (x * w / y) ** 3 * x),
    span=(0.5, 1.0),
)
KNOWN = [Gain, NORM4]
RINGS = [*(s for s in vars(semirings).values() if isinstance(s, Semiring)), NORM4]


def fortran(dtype: Any) -> layers.Dense:
    weights = np.asfortranarray(np.random.default_rng(0).standard_normal((6, 6)), dtype=dtype)
    model = layers.Dense(weights)
    assert model.weights.flags.f_contiguous
    return model


Maker = Callable[[Any], Layer]
MODELS: dict[str, Maker] = {
    **{f"Linear {s}": (lambda dtype, s=s: linear(s, dtype=dtype)) for s in RINGS},
    **{a: (lambda dtype, a=a: layers.Chain(linear(dtype=dtype), layers.activation(a)))
       for a in ("gelu", "identity", "relu", "sigmoid", "silu", "softplus", "tanh")},
    "LeakyRelu": lambda dtype: layers.LeakyRelu(0.3),
    "BatchNorm": lambda dtype: layers.BatchNorm(6, momentum=0.3, epsilon=1e-3, dtype=dtype),
    "Affine": lambda dtype: layers.Affine(6, 2.0, np.arange(6), dtype=dtype),
    "LayerNorm": lambda dtype: layers.LayerNorm(6, epsilon=1e-3, dtype=dtype),
    "Dropout": lambda dtype: layers.Chain(linear(dtype=dtype), layers.Dropout(0.4, 3)),
    "KWinners": lambda dtype: layers.Chain(
        linear(dtype=dtype), layers.KWinners(2, boost=1.5, period=50), linear(dtype=dtype)
    ),
    "Threshold": lambda dtype: layers.Chain(linear(dtype=dtype), layers.Threshold(0.1), linear(dtype=dtype)),
    "bias on active outputs": lambda dtype: layers.Chain(
        layers.KWinners(3),
        layers.Linear(linear(dtype=dtype).weights, np.ones(6), bias_on="active", output="sparse"),
        layers.Dense.random(6, 2, dtype=dtype),
    ),
    "ManyLabels": lambda dtype: layers.Chain(
        linear(dtype=dtype), layers.ManyLabels.random(6, 8, nnz=20, dtype=dtype, seed=1)
    ),
    "Dense": lambda dtype: layers.Dense.random(6, 6, dtype=dtype, seed=1),
    "ReserveLinear": lambda dtype: layers.ReserveLinear.of(linear(nnz=20, dtype=dtype), 9, penalty=0.1),
    "Dense, Fortran order": fortran,
    "Residual": lambda dtype: layers.Residual(layers.Chain(linear(dtype=dtype), layers.Tanh())),
    "Parallel": lambda dtype: layers.Parallel(linear(dtype=dtype), linear(dtype=dtype, bias=False, nnz=7)),
    "Concatenate": lambda dtype: layers.Concatenate(layers.BatchNorm(6, dtype=dtype), linear(dtype=dtype)),
    "deep": lambda dtype: layers.Chain(
        layers.Residual(layers.Residual(layers.Chain(layers.Chain(linear(dtype=dtype))))), layers.Relu()
    ),
    "twelve layers": lambda dtype: layers.Chain(*(linear(dtype=dtype, seed=k) for k in range(12))),
    "mlp": lambda dtype: models.mlp(
        [6, 9, 8, 3], nnz=[20, 20, 24], dropout=0.2, normalize="batch", dtype=dtype, seed=1
    ),
    "no edges": lambda dtype: linear(nnz=0, dtype=dtype),
    "every edge": lambda dtype: linear(nnz=36, dtype=dtype),
    "one neuron": lambda dtype: linear(inputs=1, outputs=1, nnz=1, dtype=dtype),
    "wide": lambda dtype: linear(inputs=2**60, outputs=2**60, nnz=1000, bias=False, dtype=dtype),
    "wide, no edges": lambda dtype: linear(inputs=2**60, outputs=1, nnz=0, bias=False, dtype=dtype),
    "the user's": lambda dtype: layers.Chain(Gain(3, "é\"\\\n\0 ∑"), linear(dtype=dtype), Gain(2)),
}  # fmt: skip
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def batch(model: Layer, rows: int = 5, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.1, 1, (rows, model.in_features or 6))


def runs(model: Layer) -> bool:
    """Whether to use a model: not one too wide for a batch, nor in each semiring (a kernel takes seconds)."""
    rings = {layer.semiring for _, layer in model.walk() if isinstance(layer, layers.Linear)}
    some = {semirings.plus_times, *([semirings.min_plus, NORM4] * (model_dtype(model) == np.float32))}
    return (model.in_features or 1) < 100 and rings <= some


def scored(y: Any) -> Array:
    """The numbers of an output, also where they are not computed yet."""
    return y.dense() if isinstance(y, layers.Scores) else y


def used(model: Layer) -> State:
    """Train a little where that is possible, so that nothing is as it began; return the state."""
    optimizer = training.adam(1e-2)
    state = State.start(model, optimizer, seed=5)
    if runs(model):
        x = batch(model)
        target = np.zeros((5, model.forward(x)[0].shape[1]))
        for _ in training.train(model, [(x, target)] * 3, loss=losses.mse, optimizer=optimizer, state=state):
            pass
        state.generator.random(3)
    return state


def test_the_table_has_every_kind_of_layer() -> None:
    public = {k for k in vars(layers).values() if isinstance(k, type) and issubclass(k, Layer)}
    held = {type(layer) for make in MODELS.values() for _, layer in make(np.float32).walk()}
    assert public - {Layer, layers.Activation} <= held


@every_model
@every_dtype
def test_everything_comes_back(make: Maker, dtype: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model = make(dtype)
    state = used(model)
    before = whole(model, state)
    save(path, model, state=state, metadata={"name": "x", "scores": [1, 0.5, None]})
    assert whole(model, state) == before
    saved = load_all(path, known=KNOWN)
    assert saved.state is not None
    assert whole(saved.model, saved.state) == before
    assert saved.metadata == {"name": "x", "scores": [1, 0.5, None]}
    save(tmp_path / "again", saved.model, state=saved.state, metadata=saved.metadata)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    if runs(model):
        for training_ in (False, True):  # the same masks, too
            ours, theirs = (scored(m.forward(batch(m), training=training_)[0]) for m in (model, saved.model))
            # BLAS may sum in another order where the weights lie in another.
            exact = make is not fortran
            np.testing.assert_allclose(theirs, ours, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6)


def test_loaded_parts_are_its_own_and_can_be_trained(tmp_path: Path) -> None:
    path = tmp_path / "m"
    model = MODELS["mlp"](np.float32)
    save(path, model, state=used(model))
    first, second = load_all(path), load_all(path)
    before = whole(first.model, first.state)
    optimizer = training.adam()
    pairs = [(batch(model), [0, 1, 2, 1, 0])]
    for _ in training.train(second.model, pairs, optimizer=optimizer, state=second.state):
        pass
    changed = whole(second.model, second.state)
    assert {name for name in before if before[name] != changed[name]} >= set(model.parameters())
    assert whole(first.model, first.state) == before
    assert whole(load(path)) == {name: value for name, value in before.items() if name in whole(first.model)}


def test_a_rewired_model(tmp_path: Path) -> None:
    model = MODELS["mlp"](np.float32)
    untouched = whole(model)
    pairs = [(batch(model), [0, 1, 2, 1, 0])] * 4
    for step in training.train(
        model, pairs, optimizer=training.sgd(0.1, momentum=0.9), rewiring=topology.rigl(1, 0.3, until=4)
    ):
        save(tmp_path / "m", model, state=step.state)
        saved = load_all(tmp_path / "m")
        assert whole(saved.model, saved.state) == whole(model, step.state)
    assert whole(model)["0.weights edges"] != untouched["0.weights edges"]


def test_without_state(tmp_path: Path) -> None:
    save(tmp_path / "m", layers.Relu())
    assert load_all(str(tmp_path / "m")).state is None
    assert load_all(tmp_path / "m").metadata == {}


def test_a_state_without_slots(tmp_path: Path) -> None:
    model = MODELS["mlp"](np.float32)
    state = State.start(model, training.sgd(0.1), seed=3)
    save(tmp_path / "m", model, state=state)
    again = load_all(tmp_path / "m").state
    assert again is not None
    assert again.slots == state.slots == {name: {} for name in model.parameters()}


@pytest.mark.parametrize(
    "kind", [np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64]
)
def test_every_generator(kind: Any, tmp_path: Path) -> None:
    model = linear()
    state = State.start(model, training.adam(), np.random.Generator(kind(7)))
    state.generator.integers(10, size=5, dtype=np.int32)  # half a draw is left over
    save(tmp_path / "m", model, state=state)
    again = load_all(tmp_path / "m").state
    assert again is not None
    assert again.generator.random(9).tolist() == state.generator.random(9).tolist()


def test_numbers_of_numpy_in_metadata(tmp_path: Path) -> None:
    given_ = {
        "score": np.float32(0.5),
        "count": np.int64(3),
        "rows": np.arange(3),
        "nan": float("nan"),
        "t": (1,),
    }
    save(tmp_path / "m", layers.Relu(), metadata=given_)
    metadata = load_all(tmp_path / "m").metadata
    assert np.isnan(metadata.pop("nan"))
    assert metadata == {"score": 0.5, "count": 3, "rows": [0, 1, 2], "t": [1]}


def test_infinity_where_it_means_something(tmp_path: Path) -> None:
    """In min_plus an infinite bias is none."""
    model = linear(semirings.min_plus)
    model.bias[...] = [np.inf, 1, 2, np.inf, 3, 4]  # type: ignore[index]
    save(tmp_path / "m", model)
    assert whole(load(tmp_path / "m")) == whole(model)


def test_the_size_follows_the_edges(tmp_path: Path) -> None:
    """At most 16 bytes an edge in float32: 4 for its value, 4 for its target, 8 for its source."""
    path = tmp_path / "m"
    save(path, layers.Linear.random(10**6, 10**6, nnz=10_000, bias=False))
    assert path.stat().st_size < 16 * 10_000 + 2000
    save(path, MODELS["wide"](np.float32))
    assert path.stat().st_size < 28 * 1000 + 2000


# -- Training that goes on from a file -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [lambda: training.sgd(0.05, momentum=0.9), training.adam, lambda: training.chain(
        training.clip_by_norm(1.0), training.rmsprop(1e-3, momentum=0.5))],
    ids=["sgd", "adam", "chain"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "rewiring",
    [
        topology.set_(0.3),
        topology.rigl(3, 0.3, until=100),
        topology.snfs(4, 0.3, until=100, steps=5),  # remembers activations between rewirings
        topology.deep_r(0.5, temperature=0.1),  # remembers a sign an edge
        topology.dsr(5, topology.every_steps(2, 1.0), threshold=0.1),  # remembers a threshold
        topology.in_turn(topology.gmp(0.1, 2), topology.itop(every=3)),  # remembers the edges of the start
    ],
    ids=["set", "rigl", "snfs", "deep_r", "dsr", "gmp, itop"],
)
def test_going_on_from_a_file_equals_never_stopping(
    make: Callable[[], training.Transform], rewiring: topology.Rewirer, dtype: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((40, 6)), rng.integers(3, size=40)

    def start(model: Layer, epochs: int, generator: np.random.Generator, state: State | None = None) -> Any:
        batches = data.batches(x, y, 16, seed=generator, dtype=dtype)
        options: dict[str, Any] = {"optimizer": make(), "rewiring": rewiring, "epochs": epochs}
        return training.train(model, batches, **options, seed=generator, state=state)

    uncut = MODELS["mlp"](dtype)
    steps = list(start(uncut, 4, np.random.default_rng(2)))
    parts = MODELS["mlp"](dtype)
    for step in start(parts, 4, np.random.default_rng(2)):
        if step.index == 5:  # the end of the second epoch
            break
    save(tmp_path / "m", parts, state=step.state)
    saved = load_all(tmp_path / "m")
    assert saved.state is not None
    rest = list(start(saved.model, 2, saved.state.generator, saved.state))
    assert [s.loss for s in rest] == [s.loss for s in steps[6:]]
    assert whole(saved.model, saved.state) == whole(uncut, steps[-1].state)
    assert any(s.changes for s in rest)


# -- The user's own ------------------------------------------------------------------------------------------


def test_what_is_not_known(tmp_path: Path) -> None:
    save(tmp_path / "layer", Gain(1))
    save(tmp_path / "semiring", linear(NORM4))
    with pytest.raises(FileError, match=r"known=\[\.\.\.\], got Gain"):
        load(tmp_path / "layer")
    with pytest.raises(FileError, match=r"known=\[\.\.\.\], got norm4_times"):
        load(tmp_path / "semiring", known=[Gain])
    loaded = load(tmp_path / "semiring", known=(thing for thing in KNOWN))
    assert isinstance(loaded, layers.Linear)
    assert loaded.semiring is NORM4
    for known in (["Gain"], [Gain(1)], 5, [int]):
        with pytest.raises(KindError, match=r"^known\[0\]: expected "):
            load(tmp_path / "layer", known=known)  # type: ignore[arg-type]


def test_a_layer_whose_restore_fails(tmp_path: Path) -> None:
    class Changed(Gain):
        def __init__(self, power: int) -> None:
            super().__init__(power)

    Changed.__name__ = "Gain"
    save(tmp_path / "m", Gain(1))
    with pytest.raises(FileError, match=r"TypeError: .*note"):
        load(tmp_path / "m", known=[Changed])


# -- Written whole or not at all -----------------------------------------------------------------------------


def test_the_public_names() -> None:
    assert (gbnn.save, gbnn.load) == (save, load) == (training.save, training.load)


@pytest.mark.parametrize("dtype", [">f4", ">i8", "<f8", "?", "u1", "f2"])
def test_memory_of_any_byte_order(dtype: str, tmp_path: Path) -> None:
    model = linear()
    state = State.start(model, training.sgd(0.1))
    kept = (np.arange(model.nnz) % 7).astype(dtype)
    state.memory["weights"] = topology.Memory({"age": kept}, {"most": np.array(3).astype(dtype)})
    save(tmp_path / "m", model, state=state)
    loaded = load_all(tmp_path / "m").state
    assert loaded is not None
    memory = loaded.memory["weights"]
    np.testing.assert_array_equal(memory.edges["age"], kept)
    assert memory.layer["most"] == np.array(3).astype(dtype)
    assert {array.dtype for array in (memory.edges["age"], memory.layer["most"])} == {
        np.dtype(dtype).newbyteorder("=")
    }
