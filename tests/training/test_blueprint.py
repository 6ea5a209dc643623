"""Architectures as JSON: what `describe` says, `parse` and `rebuild` make again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gbnn import layers, models, semirings
from gbnn.errors import ArgumentError, KindError
from gbnn.layers import Layer
from gbnn.training.blueprint import Blueprint, array_names, describe, known_things, rebuild

Array = np.ndarray[Any, Any]


def network() -> layers.Chain:
    return layers.Chain(
        layers.Linear.random(6, 4, nnz=9, semiring=semirings.max_plus, seed=1),
        layers.Residual(layers.Chain(layers.BatchNorm(4), layers.LeakyRelu(0.5))),
        layers.Concatenate(layers.Identity(), layers.Dense.random(4, 2, bias=False, seed=2)),
        layers.Dropout(0.25, seed=3),
    )


def held(model: Layer) -> dict[str, Any]:
    return model.parameters() | model.buffers()


def test_describe() -> None:
    tree = describe(network())
    assert tree["kind"] == "Chain"
    assert tree["arrays"] == []
    assert list(tree["children"]) == ["0", "1", "2", "3"]
    assert tree["children"]["0"] == {
        "kind": "Linear",
        "config": {"semiring": {"semiring": "max_plus"}},
        "arrays": ["weights", "bias"],
        "children": {},
    }
    inner = tree["children"]["1"]["children"]["0"]["children"]
    assert inner["0"]["arrays"] == ["scale", "shift", "mean", "variance"]
    assert inner["1"]["config"] == {"slope": 0.5}
    assert tree["children"]["2"]["children"]["1"]["arrays"] == ["weights"]
    assert set(tree["children"]["3"]["config"]) == {"rate", "state"}


def test_a_semiring_called_like_one_of_gbnns_is_refused() -> None:
    """It would come back as gbnn's own, and the model would compute something else."""
    impostor = semirings.define("plus_times", lambda a, b: a + b, 0.0, lambda x, w: (x - w) ** 2)
    model = layers.Linear.random(3, 2, nnz=4, semiring=impostor, bias=False)
    with pytest.raises(ArgumentError, match="semiring: expected a name that is not one of gbnn's own"):
        describe(model)


def test_names_are_those_of_the_model() -> None:
    for model in (network(), layers.Dense.random(3, 2), layers.Relu(), models.mlp([5, 4, 3, 2], nnz=12)):
        blueprint = Blueprint.parse(describe(model))
        assert set(blueprint.names()) == set(held(model))
        assert len(blueprint.names()) == len(held(model))


def test_rebuild() -> None:
    model = network()
    blueprint = Blueprint.parse(json.loads(json.dumps(describe(model))))
    again = rebuild(blueprint, held(model))
    assert describe(again) == describe(model)
    x = np.random.default_rng(0).standard_normal((5, 6))
    for training in (False, True):
        ours, theirs = (m.forward(x, training=training)[0] for m in (model, again))
        np.testing.assert_array_equal(ours, theirs)
    # Arrays are copies: what one does is not seen by the other.
    again.buffers()["1.0.0.mean"][:] = 7
    assert not (model.buffers()["1.0.0.mean"] == 7).any()


def test_array_names() -> None:
    blueprint = Blueprint.parse(describe(layers.Linear.random(3, 2, nnz=4)))
    whole = {"model/weights/values": np.ones(4), "model/bias": np.ones(2)}
    assert array_names(blueprint, whole) == ["weights", "bias"]
    for name in whole:
        with pytest.raises(ArgumentError, match="its array in the file"):
            array_names(blueprint, {k: a for k, a in whole.items() if k != name})


class Mine(layers.Relu):
    pass


def test_what_is_known() -> None:
    tree = describe(layers.Chain(Mine(), layers.Relu()))
    with pytest.raises(ArgumentError, match="got Mine"):
        Blueprint.parse(tree)
    assert Blueprint.parse(tree, [Mine]).children["0"].kind is Mine
    assert Blueprint.parse(tree, known_things(Mine)).children["0"].kind is Mine


def test_the_users_own_goes_before_gbnns() -> None:
    class Relu(Layer):
        def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
            raise NotImplementedError

    assert Blueprint.parse(describe(Relu())).kind is layers.Relu
    assert Blueprint.parse(describe(Relu()), [Relu]).kind is Relu
    ring = semirings.define("max_plus", lambda a, b: max(a, b), -np.inf, lambda x, w: x + w)
    tree = describe(network())
    assert Blueprint.parse(tree).children["0"].config["semiring"] is semirings.max_plus
    assert Blueprint.parse(tree, [ring]).children["0"].config["semiring"] is ring


@pytest.mark.parametrize("known", [["Mine"], [Mine()], [object], [None], 5, "Mine"], ids=str)
def test_what_cannot_be_known(known: Any) -> None:
    with pytest.raises(KindError, match=r"known\[0\]: expected a Layer class or a Semiring"):
        known_things(known)


def test_arrays_that_do_not_fit() -> None:
    model = network()
    blueprint, arrays = Blueprint.parse(describe(model)), held(model)
    for name, array in {
        "0.weights": np.ones((6, 4)),
        "0.bias": np.ones(5),
        "1.0.0.mean": np.zeros(5, dtype=np.float32),
        "1.0.0.scale": np.zeros(4),
        "2.1.weights": model.parameters()["0.weights"],
    }.items():
        with pytest.raises((ArgumentError, KindError)):
            rebuild(blueprint, arrays | {name: array})
    rebuild(blueprint, arrays)


@pytest.mark.parametrize("kind", [layers.LayerNorm, layers.BatchNorm])
def test_sizes_are_checked_before_memory_is_taken(kind: Any) -> None:
    model = kind(4)
    tree = describe(model)
    tree["config"]["features"] = 2**62
    with pytest.raises(ArgumentError, match="the size of the layer's arrays, got 4611686018427387904"):
        rebuild(Blueprint.parse(tree), held(model))
