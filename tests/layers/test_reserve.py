"""ReserveLinear: what is in reserve has gradients, and no part in the output."""

from __future__ import annotations

import numpy as np
import pytest
from support.adjoint import numeric_gradient, numeric_weight_gradient

import gbnn
from gbnn import layers, semirings, training
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers import Linear, ReserveLinear
from gbnn.weights import Weights


def made(penalty=0.0):
    layer = Linear.random(7, 5, nnz=12, dtype=np.float64, seed=0)
    return ReserveLinear.of(layer, 9, penalty=penalty, seed=1)


def run(layer, x, dy):
    y, pullback = layer.forward(x)
    return y, *pullback(dy)


X = np.random.default_rng(3).standard_normal((4, 7))
DY = np.random.default_rng(4).standard_normal((4, 5))


def test_the_output_is_that_of_the_weights_alone():
    layer = made()
    plain = Linear(layer.weights, layer.bias)
    y, dx, gradients = run(layer, X, DY)
    expected_y, expected_dx, expected = run(plain, X, DY)
    assert np.array_equal(y, expected_y)
    assert np.array_equal(dx, expected_dx)
    for name in ("weights", "bias"):
        assert np.array_equal(gradients[name], expected[name])


def test_the_gradient_of_the_reserve_is_that_of_absent_edges():
    layer = made()
    sources = np.append(layer.weights.sources, layer.reserve.sources)
    targets = np.append(layer.weights.targets, layer.reserve.targets)
    values = np.append(layer.weights.values, np.zeros(9))
    both = Weights.from_coo(sources, targets, values, (7, 5), dtype=np.float64)

    def scalar():
        return float((Linear(both, layer.bias).forward(X)[0] * DY).sum())

    expected = numeric_weight_gradient(scalar, both)
    gradient = np.asarray(run(layer, X, DY)[2]["reserve"])
    at = both.edges.find(layer.reserve.sources, layer.reserve.targets)
    np.testing.assert_allclose(gradient, expected[at], rtol=1e-6, atol=1e-6)


def test_the_penalty_is_the_gradient_of_the_exploration_loss():
    layer, penalty = made(0.3), 0.3
    plain, with_penalty = run(made(), X, DY)[2], run(layer, X, DY)[2]
    w, r = layer.weights.values.copy(), layer.reserve.values.copy()

    def loss():
        return penalty / 2 * ((w**2).sum() + (r**2).sum() / (12 / 35))

    for name, array in (("weights", w), ("reserve", r)):
        added = np.asarray(with_penalty[name]) - np.asarray(plain[name])
        np.testing.assert_allclose(added, numeric_gradient(loss, array), rtol=1e-6, atol=1e-8)
    assert np.array_equal(with_penalty["bias"], plain["bias"])


def test_numbers_are_those_of_the_forward_set():
    layer = made()
    assert layer.nnz == 12
    assert layer.nbytes == layer.weights.nbytes + layer.reserve.nbytes + layer.bias.nbytes
    assert "9 in reserve" in repr(layer)
    assert "9 in reserve" in layer.kind
    assert (layer.weights.edges.find(layer.reserve.sources, layer.reserve.targets) < 0).all()
    assert ReserveLinear.of(Linear.random(3, 3, nnz=9), 0).reserve.nnz == 0


def test_a_file_holds_both_sets(tmp_path):
    layer = layers.Chain(made(0.25), layers.Relu())
    optimizer = training.adam(0.01)
    state = training.State.start(layer, optimizer)
    gbnn.save(tmp_path / "m.safetensors", layer, state=state)
    again = gbnn.load(tmp_path / "m.safetensors").layers[0]
    assert isinstance(again, ReserveLinear)
    assert again.penalty == 0.25
    for name in ("weights", "reserve"):
        one, two = getattr(again, name), getattr(layer.layers[0], name)
        assert all(np.array_equal(a, b) for a, b in zip(one.to_coo(), two.to_coo(), strict=True))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ReserveLinear.of("x", 3), KindError, "layer: expected a Linear, got str"),
        (
            lambda: ReserveLinear.of(Linear.random(3, 3, nnz=4, semiring=semirings.min_plus), 3),
            ArgumentError,
            "layer: expected one of plus_times",
        ),
        (lambda: ReserveLinear.of(Linear.random(3, 3, nnz=4), 6), ArgumentError, "nnz: expected at most 5"),
        (
            lambda: ReserveLinear.of(Linear.random(3, 3, nnz=4), -1),
            ArgumentError,
            "reserve: expected an integer",
        ),
        (
            lambda: ReserveLinear(made().weights, made().weights),
            ArgumentError,
            "reserve: expected other edges",
        ),
        (lambda: ReserveLinear(made().weights, 3), KindError, "reserve: expected a gbnn Weights, got int"),
        (
            lambda: ReserveLinear(made().weights, made().reserve.astype(np.float32)),
            ArgumentError,
            "reserve: expected 7 x 5, float64",
        ),
        (
            lambda: ReserveLinear(made().weights, made().reserve, penalty=-1.0),
            ArgumentError,
            "penalty: expected a finite number",
        ),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_bad_output_gradient():
    _, pullback = made().forward(X)
    with pytest.raises(GbnnError, match=r"ReserveLinear\.pullback dy"):
        pullback(np.ones((4, 6)))
