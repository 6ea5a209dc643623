"""`mlp`: the layers it makes, to the edge, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bits import bits

from gbnn import layers, models, semirings, topology
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers import Dense, Linear
from gbnn.models import mlp
from gbnn.topology import allocate, wire

Array = np.ndarray[Any, Any]


def weighted(model: layers.Chain) -> list[Any]:
    """Layers with weights, in order."""
    return [layer for layer in model if isinstance(layer, (Linear, Dense))]


def counts(model: layers.Chain) -> list[int]:
    return [layer.nnz for layer in weighted(model)]


def kinds(model: layers.Chain) -> list[str]:
    return [type(layer).__name__ for layer in model]


# -- Layers --------------------------------------------------------------------------------------------------


def test_widths() -> None:
    model = mlp([7, 20, 5, 3], nnz=[30, 20, 9])
    assert kinds(model) == ["Linear", "Relu", "Linear", "Relu", "Linear"]
    assert [(layer.in_features, layer.out_features) for layer in weighted(model)] == [
        (7, 20),
        (20, 5),
        (5, 3),
    ]
    assert (model.in_features, model.out_features) == (7, 3)
    assert model.forward(np.ones((4, 7)))[0].shape == (4, 3)


@pytest.mark.parametrize("widths", [(7, 5), [7, 5], np.array([7, 5]), range(7, 4, -2), (np.int32(7), 5)])
def test_widths_of_any_kind(widths: Any) -> None:
    model = mlp(widths, nnz=11)
    assert kinds(model) == ["Linear"]
    assert (model.in_features, model.out_features, model.nnz) == (7, 5, 11)


@settings(deadline=None)
@given(draws=st.data(), widths=st.lists(st.integers(1, 12), min_size=2, max_size=5))
def test_exactly_the_edges_asked_for(draws: st.DataObject, widths: list[int]) -> None:
    shapes = [(widths[k], widths[k + 1]) for k in range(len(widths) - 1)]
    places = [a * b for a, b in shapes]
    each = [draws.draw(st.integers(0, most)) for most in places]
    assert counts(mlp(widths, nnz=each)) == each
    total = draws.draw(st.integers(0, sum(places)))
    for name in ("erdos_renyi", "uniform"):
        model = mlp(widths, nnz=total, allocation=name)
        assert counts(model) == getattr(allocate, name)(shapes, total)
        assert model.nnz == total
    density = draws.draw(st.floats(1e-6, 1))
    assert mlp(widths, density=density).nnz == round(density * sum(places))
    shares = [draws.draw(st.floats(1e-6, 1)) for _ in places]
    made = counts(mlp(widths, density=shares))
    assert made == [round(share * most) for share, most in zip(shares, places, strict=True)]


def test_lists_of_any_kind() -> None:
    for nnz in ([5, 6], (5, 6), np.array([5, 6]), range(5, 7), [np.int64(5), np.uint8(6)]):
        assert counts(mlp([4, 5, 3], nnz=nnz)) == [5, 6]  # type: ignore[arg-type]
    for density in ([0.5, 1], np.array([0.5, 1.0], dtype=np.float32)):
        assert counts(mlp([4, 5, 3], density=density)) == [10, 15]  # type: ignore[arg-type]


def test_allocation_by_a_function() -> None:
    seen: list[Any] = []

    def last_first(shapes: Any, total: int) -> list[int]:
        seen.append((shapes, total))
        return [total - 10, 10]

    assert counts(mlp([4, 5, 3], nnz=17, allocation=last_first)) == [7, 10]
    assert seen == [([(4, 5), (5, 3)], 17)]
    assert counts(mlp([4, 5, 3], nnz=17, allocation=lambda s, n: np.array([7, 10]))) == [7, 10]  # type: ignore[arg-type, return-value]


def test_a_full_layer_is_dense() -> None:
    assert kinds(mlp([4, 5, 3], nnz=[19, 15])) == ["Linear", "Relu", "Dense"]
    assert kinds(mlp([4, 5, 3], density=1.0)) == ["Dense", "Relu", "Dense"]
    # In other semirings BLAS has no say.
    full = mlp([4, 5, 3], density=1.0, semiring=semirings.max_plus)
    assert kinds(full) == ["Linear", "Relu", "Linear"]
    assert full.nnz == 35


@pytest.mark.parametrize(
    "name", ["gelu", "identity", "leaky_relu", "relu", "sigmoid", "silu", "softplus", "tanh"]
)
def test_activations_by_name(name: str) -> None:
    model = mlp([4, 5, 6, 3], nnz=20, activation=name)
    assert [repr(layer) for layer in (model[1], model[3])] == [repr(layers.activation(name))] * 2
    assert model[1] is not model[3]


def test_activations_by_a_function() -> None:
    model = mlp([4, 5, 6, 3], nnz=20, activation=lambda: layers.LeakyRelu(0.3))
    assert [repr(layer) for layer in (model[1], model[3])] == ["LeakyRelu(slope=0.3)"] * 2
    assert kinds(mlp([4, 5, 3], nnz=20, activation=layers.Tanh))[1] == "Tanh"


@pytest.mark.parametrize("semiring", [semirings.plus_times, semirings.min_plus, semirings.log_plus], ids=str)
@pytest.mark.parametrize("bias", [None, True, False])
def test_semirings_and_biases(semiring: semirings.Semiring, bias: bool | None) -> None:
    model = mlp([4, 5, 3], nnz=[19, 15], semiring=semiring, bias=bias)
    wanted = semiring is semirings.plus_times if bias is None else bias
    for layer in weighted(model):
        assert (layer.bias is not None) == wanted
        assert isinstance(layer, Dense) or layer.semiring is semiring


def test_everything_between_the_layers() -> None:
    block = ["Linear", "LayerNorm", "Tanh", "Dropout"]
    model = mlp([4, 5, 6, 3], nnz=30, activation="tanh", normalize="layer", dropout=0.25)
    assert kinds(model) == [*block, *block, "Linear"]
    assert [layer.in_features for layer in model if isinstance(layer, layers.LayerNorm)] == [5, 6]
    drops = [layer for layer in model if isinstance(layer, layers.Dropout)]
    assert [d.rate for d in drops] == [0.25] * 2
    masks = [d.forward(np.ones((20, 5)), training=True)[0] for d in drops]
    assert not np.array_equal(*masks)
    assert "BatchNorm" in kinds(mlp([4, 5, 3], nnz=20, normalize="batch"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "float32", np.dtype(float)])
def test_dtypes(dtype: Any) -> None:
    model = mlp([4, 5, 3], nnz=[10, 15], normalize="batch", dtype=dtype)
    held = model.parameters() | model.buffers()
    assert {array.dtype for array in held.values()} == {np.dtype(dtype)}
    assert len(held) == 8


def test_seeds() -> None:
    options: dict[str, Any] = {"nnz": 40, "dropout": 0.5}
    models_ = [mlp([8, 9, 3], **options, seed=seed) for seed in (1, 1, 2, np.random.default_rng(1))]
    first, again, other, drawn = (bits(model) for model in models_)
    assert first == again == drawn
    assert all(first[name] != other[name] for name in first if "bias" not in name)
    masks = [model[2].forward(np.ones((9, 9)), training=True)[0] for model in models_]
    np.testing.assert_array_equal(masks[0], masks[1])
    rng = np.random.default_rng(1)
    one, two = (bits(mlp([8, 9, 3], **options, seed=rng)) for _ in range(2))
    assert one != two


def test_layers_are_initialised_by_their_own_fan_in() -> None:
    """Each hidden layer keeps the size of the signal, however sparse it is."""
    model = mlp([2000, 2000, 2000], nnz=[2000 * 4, 2000 * 50], bias=False, seed=0)
    x = np.random.default_rng(0).standard_normal((20, 2000))
    for layer in weighted(model):
        size = layer.forward(x)[0].std()
        assert size == pytest.approx(math.sqrt(2), rel=0.1)


def test_a_layer_of_any_width() -> None:
    model = mlp([2**60, 2**60], nnz=1000, bias=False)
    assert model.nnz == 1000
    assert model.nbytes < 100_000


# -- Wiring --------------------------------------------------------------------------------------------------


def edges_of(model: layers.Chain) -> list[Edges]:
    return [layer.weights.edges for layer in weighted(model)]


def test_one_maker_for_all_layers() -> None:
    model = mlp([12, 20, 8], nnz=[40, 80], wiring=wire.constant_fan_in, seed=0)
    assert [np.bincount(edges.targets).tolist() for edges in edges_of(model)] == [[2] * 20, [10] * 8]


def test_random_is_the_default() -> None:
    options: dict[str, Any] = {"nnz": 90, "seed": 5}
    assert bits(mlp([12, 20, 8], **options)) == bits(mlp([12, 20, 8], wiring=wire.random, **options))
    assert bits(mlp([12, 20, 8], **options)) != bits(mlp([12, 20, 8], wiring=wire.regular, **options))
    rng = np.random.default_rng(5)
    first, second = (Linear.random(a, b, nnz=c, seed=rng) for a, b, c in [(12, 20, 60), (20, 8, 30)])
    model = mlp([12, 20, 8], nnz=[60, 30], seed=5)
    assert bits(model) == bits(layers.Chain(first, layers.Relu(), second))


def test_a_maker_for_each_layer() -> None:
    model = mlp([8, 8, 8, 5], nnz=[16, 20, 40], wiring=[wire.n_of_m(1, 4), wire.random, wire.random])
    assert kinds(model) == ["Linear", "Relu", "Linear", "Relu", "Dense"]
    first, second = (layer.weights.edges for layer in weighted(model)[:2])
    assert np.bincount(first.targets).tolist() == [2] * 8
    assert np.unique(first.sources * 8 // 32 * 8 + first.targets).size == 16
    assert second.nnz == 20


def test_graphs_for_the_layers() -> None:
    graphs = wire.butterfly(8)
    for wiring in (graphs, tuple(graphs), [wire.fixed(graphs[0]), *graphs[1:]]):
        for nnz in (None, 48, [16, 16, 16]):
            model = mlp([8] * 4, nnz=nnz, allocation="uniform", wiring=wiring)
            assert all(a is b for a, b in zip(edges_of(model), graphs, strict=True))
    model = mlp([8, 8], wiring=graphs[0], semiring=semirings.min_plus)
    assert edges_of(model) == [graphs[0]]


def test_a_full_graph_is_dense() -> None:
    full = wire.random(np.random.default_rng(0), (4, 5), 20)
    assert kinds(mlp([4, 5], wiring=full)) == ["Dense"]
    assert kinds(mlp([4, 5], wiring=full, semiring=semirings.min_plus)) == ["Linear"]
    assert kinds(mlp([4, 5], density=1.0, wiring=wire.regular)) == ["Dense"]


def test_what_wiring_is_asked() -> None:
    asked: list[Any] = []

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: Any) -> Edges:
        asked.append((shape, nnz))
        return wire.random(rng, shape, 3 if nnz is None else nnz)

    mlp([4, 5, 3], nnz=[7, 8], wiring=make)
    assert mlp([4, 5, 3], wiring=make).nnz == 6
    assert asked == [((4, 5), 7), ((5, 3), 8), ((4, 5), None), ((5, 3), None)]


# -- What it refuses -----------------------------------------------------------------------------------------


def no_layer() -> int:
    return 5


@pytest.mark.parametrize(
    ("options", "kind", "where"),
    [
        ({"widths": 5}, KindError, "widths"),
        ({"widths": "784"}, KindError, "widths"),
        ({"widths": None}, KindError, "widths"),
        ({"widths": {4, 5}}, KindError, "widths"),
        ({"widths": np.array(5)}, KindError, "widths"),
        ({"widths": []}, ArgumentError, "widths"),
        ({"widths": [4]}, ArgumentError, "widths"),
        ({"widths": [4, 0, 3]}, ArgumentError, r"widths\[1\]"),
        ({"widths": [4, 5, -3]}, ArgumentError, r"widths\[2\]"),
        ({"widths": [4, 5.0, 3]}, KindError, r"widths\[1\]"),
        ({"widths": [4, True, 3]}, KindError, r"widths\[1\]"),
        ({"widths": [4, [5], 3]}, KindError, r"widths\[1\]"),
        ({"widths": [4, 2**61]}, ArgumentError, "out_features"),
        ({"nnz": None}, ArgumentError, "nnz, density"),
        ({"density": 0.5}, ArgumentError, "nnz, density"),
        ({"nnz": -1}, ArgumentError, "nnz"),
        ({"nnz": 36}, ArgumentError, "nnz"),
        ({"nnz": 5.0}, KindError, "nnz"),
        ({"nnz": True}, KindError, "nnz"),
        ({"nnz": "12"}, KindError, "nnz"),
        ({"nnz": b"12"}, KindError, "nnz"),
        ({"nnz": np.array(12)}, KindError, "nnz"),
        ({"nnz": [12]}, ArgumentError, "nnz"),
        ({"nnz": [5, 5, 5]}, ArgumentError, "nnz"),
        ({"nnz": []}, ArgumentError, "nnz"),
        ({"nnz": [5, 16]}, ArgumentError, r"nnz\[1\]"),
        ({"nnz": [-5, 6]}, ArgumentError, r"nnz\[0\]"),
        ({"nnz": [5, 6.0]}, KindError, r"nnz\[1\]"),
        ({"nnz": [[1, 2], [3, 4]]}, KindError, r"nnz\[0\]"),
        ({"nnz": None, "density": 0}, ArgumentError, "density"),
        ({"nnz": None, "density": 1.5}, ArgumentError, "density"),
        ({"nnz": None, "density": -0.5}, ArgumentError, "density"),
        ({"nnz": None, "density": math.nan}, ArgumentError, "density"),
        ({"nnz": None, "density": "0.5"}, KindError, "density"),
        ({"nnz": None, "density": [0.5]}, ArgumentError, "density"),
        ({"nnz": None, "density": [0.5, 0]}, ArgumentError, r"density\[1\]"),
        ({"nnz": None, "density": [0.5, None]}, KindError, r"density\[1\]"),
        ({"allocation": "erdos"}, ArgumentError, "allocation"),
        ({"allocation": 5}, KindError, "allocation"),
        ({"allocation": None}, KindError, "allocation"),
        ({"allocation": lambda shapes, total: [total]}, ArgumentError, "allocation"),
        ({"allocation": lambda shapes, total: None}, ArgumentError, "allocation"),
        ({"allocation": lambda shapes, total: [6, 5]}, ArgumentError, "allocation"),
        ({"allocation": lambda shapes, total: [6.0, 6.0]}, KindError, r"allocation\[0\]"),
        ({"allocation": lambda shapes, total: [-4, 16]}, ArgumentError, r"allocation\[0\]"),
        ({"wiring": None}, KindError, "wiring"),
        ({"wiring": "random"}, KindError, "wiring"),
        ({"wiring": [wire.random]}, ArgumentError, "wiring"),
        ({"wiring": [wire.random, 3]}, KindError, "wiring"),
        ({"wiring": []}, ArgumentError, "wiring"),
        ({"wiring": lambda rng, shape, nnz: None}, KindError, "wiring"),
        ({"wiring": lambda rng, shape, nnz: wire.random(rng, shape, nnz - 1)}, ArgumentError, "wiring"),
        ({"wiring": lambda rng, shape, nnz: wire.random(rng, shape[::-1], nnz)}, ArgumentError, "wiring"),
        (
            {"wiring": lambda rng, shape, nnz: wire.random(rng, (9, 9), 2), "nnz": None},
            ArgumentError,
            "wiring",
        ),
        ({"wiring": Edges.from_coo([0], [1], (4, 5))[0]}, ArgumentError, "nnz"),
        ({"wiring": Edges.from_coo([0], [1], (4, 5))[0], "nnz": None}, ArgumentError, "shape"),
        ({"wiring": wire.n_of_m(2, 4)}, ArgumentError, "nnz"),
        ({"wiring": wire.regular, "nnz": None}, KindError, "nnz"),
        ({"wiring": wire.regular, "density": 0.5}, ArgumentError, "nnz, density"),
        ({"activation": "swish"}, ArgumentError, "activation"),
        ({"activation": layers.Relu()}, KindError, "activation"),
        ({"activation": None}, KindError, "activation"),
        ({"activation": no_layer}, KindError, "activation"),
        ({"activation": "swish", "widths": [4, 5]}, ArgumentError, "activation"),
        ({"activation": lambda: layers.Dense.random(4, 2)}, ArgumentError, "Chain layer 1"),
        ({"semiring": "min_plus"}, KindError, "semiring"),
        ({"semiring": None}, KindError, "semiring"),
        ({"semiring": semirings.any_pair, "bias": True}, ArgumentError, "bias"),
        ({"bias": "no"}, KindError, "bias"),
        ({"bias": 1}, KindError, "bias"),
        ({"dropout": 1}, ArgumentError, "dropout"),
        ({"dropout": -0.1}, ArgumentError, "dropout"),
        ({"dropout": 1.0, "widths": [4, 5]}, ArgumentError, "dropout"),
        ({"dropout": "0.5"}, KindError, "dropout"),
        ({"normalize": "group"}, ArgumentError, "normalize"),
        ({"normalize": True}, KindError, "normalize"),
        ({"normalize": ["batch"]}, KindError, "normalize"),
        ({"dtype": np.float16}, KindError, "dtype"),
        ({"dtype": "real"}, KindError, "dtype"),
        ({"seed": -1}, ArgumentError, "seed"),
        ({"seed": None}, KindError, "seed"),
        ({"widths": [10**6, 10**6, 10], "nnz": None, "density": 1.0}, ArgumentError, ""),
    ],
    ids=str,
)
def test_bad_arguments(options: dict[str, Any], kind: type[GbnnError], where: str) -> None:
    arguments = {"widths": [4, 5, 3], "nnz": 12} | options
    with pytest.raises(kind, match=f"^{where}.*: expected "):
        mlp(arguments.pop("widths"), **arguments)


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.sampled_from([2**63, 10**400, -(10**400), math.nan, math.inf, 0.5, 1e-300, 1j])
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.lists(st.none() | st.integers(-2, 20) | st.floats() | st.text(max_size=1), max_size=4)
    | st.sampled_from([np.array(3), np.array([3, 4]), np.array([0.5, 0.5]), np.ones((2, 2)), np.array(["a"])])
    | st.sampled_from([object(), layers.Relu(), np.random, {}, {1, 2}, slice(3)])
)
"""But no functions: what a user's own raises is the user's own."""
NAMES = ["widths", "nnz", "density", "allocation", "wiring", "activation", "semiring", "bias", "dropout"]


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*NAMES, "normalize", "dtype", "seed"]), ANYTHING, min_size=1, max_size=3
    ),
    st.sampled_from([{"nnz": 12}, {"density": 0.4}]),
)
def test_anything_makes_a_model_or_a_gbnn_error(options: dict[str, Any], edges: dict[str, Any]) -> None:
    arguments = {"widths": [4, 5, 3], **edges} | options
    try:
        model = mlp(arguments.pop("widths"), **arguments)
    except GbnnError:
        return
    assert isinstance(model, layers.Chain)
    y, _ = model.forward(np.ones((2, model.in_features or 0)))
    assert y.shape == (2, model.out_features)


def test_public_names() -> None:
    assert models.mlp is mlp
    assert models.__all__ == ["mlp"]
    assert topology.allocate is allocate
