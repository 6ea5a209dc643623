"""SNIP and GraSP against dense formulas: gradients and Hessian products written out layer by layer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bits import bits
from support.loops import small

from gbnn import data, layers, losses, models, semirings
from gbnn.errors import GbnnError, NonFiniteError
from gbnn.layers import Layer
from gbnn.topology import at_init
from gbnn.topology.at_init.gradients import in_float64
from gbnn.topology.at_init.keep import edged

Array = np.ndarray[Any, Any]
patient = settings(deadline=None, max_examples=25)


def a_model(widths: tuple[int, ...] = (12, 9, 7, 4), density: float = 0.4, activation: str = "relu") -> Layer:
    model = models.mlp(
        widths, density=density, allocation="uniform", activation=activation, dtype=np.float64, seed=2
    )
    rng = np.random.default_rng(7)
    for name, parameter in model.parameters().items():
        if name.endswith("bias"):
            parameter += rng.standard_normal(parameter.shape) / 3
    return model


def samples(rows: int = 20, features: int = 12, classes: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, features)), rng.integers(classes, size=rows)


class Plain:
    """A ReLU network with cross entropy on dense arrays, and the derivative of its gradient along `v`."""

    def __init__(self, model: Layer, temperature: float = 1.0) -> None:
        self.weights = [w.to_dense() for w in edged(model).values()]
        self.edges = [(w.sources, w.targets) for w in edged(model).values()]
        self.biases = [p for name, p in model.parameters().items() if name.endswith("bias")]
        self.temperature = temperature

    def at_edges(self, arrays: list[Array]) -> list[Array]:
        return [a[e] for a, e in zip(arrays, self.edges, strict=True)]

    def spread(self, per_edge: list[Array]) -> list[Array]:
        full = [np.zeros_like(w) for w in self.weights]
        for array, edges, values in zip(full, self.edges, per_edge, strict=True):
            array[edges] = values
        return full

    def gradients(self, x: Array, labels: Array, v: list[Array] | None = None) -> list[Array]:
        """The gradient by each weight, or, with `v`, H v: every line below differentiated along v."""
        v = [np.zeros_like(w) for w in self.weights] if v is None else v
        activations, moved, open_ = [x], [np.zeros_like(x)], []
        for w, b, dw in zip(self.weights, self.biases, v, strict=True):
            z = activations[-1] @ w + b
            dz = moved[-1] @ w + activations[-1] @ dw
            open_.append(z > 0)
            activations.append(np.maximum(z, 0))
            moved.append(dz * open_[-1])
        y, dy = z / self.temperature, dz / self.temperature  # the last layer has no ReLU
        p = np.exp(y - y.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        back = (p - np.eye(y.shape[1])[labels]) / len(x) / self.temperature
        moved_back = p * (dy - (p * dy).sum(axis=1, keepdims=True)) / len(x) / self.temperature
        result: list[Array] = []
        for k in reversed(range(len(self.weights))):
            moving = moved[k].T @ back + activations[k].T @ moved_back
            result.insert(0, moving if any(d.any() for d in v) else activations[k].T @ back)
            if k:
                moved_back = (moved_back @ self.weights[k].T + back @ v[k].T) * open_[k - 1]
                back = back @ self.weights[k].T * open_[k - 1]
        return result


def assert_same(scores: dict[str, Array], expected: list[Array], tolerance: float = 1e-6) -> None:
    largest = max(np.abs(e).max(initial=0) for e in expected)
    for score, wanted in zip(scores.values(), expected, strict=True):
        np.testing.assert_allclose(score, wanted, rtol=tolerance, atol=tolerance * largest)


def test_snip_is_the_definition() -> None:
    model, (x, labels) = a_model(), samples()
    plain = Plain(model)
    gradient = plain.at_edges(plain.gradients(x, labels))
    values = plain.at_edges(plain.weights)
    scores = at_init.snip(model, [(x, labels)], losses.cross_entropy)
    assert_same(scores, [np.abs(w * g) for w, g in zip(values, gradient, strict=True)], 1e-12)
    assert list(scores) == list(edged(model))


def test_snip_is_how_the_loss_changes_as_an_edge_shrinks() -> None:
    model, (x, labels) = a_model(activation="tanh"), samples()
    scores = at_init.snip(model, [(x, labels)], losses.cross_entropy)
    for name, w in edged(model).items():
        values = w.values.copy()
        for k in range(0, w.nnz, 5):
            at = []
            for factor in (1 + 1e-6, 1 - 1e-6):
                moved = values.copy()
                moved[k] *= factor
                w.assign(moved)
                at.append(losses.cross_entropy(model.forward(x)[0], labels)[0])
            w.assign(values)
            assert abs(at[0] - at[1]) / 2e-6 == pytest.approx(scores[name][k], rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("temperature", [1.0, 200.0])
def test_grasp_is_the_hessian_product(temperature: float) -> None:
    model, (x, labels) = a_model(), samples()
    plain = Plain(model, temperature)
    gradient = plain.at_edges(plain.gradients(x, labels))
    product = plain.at_edges(plain.gradients(x, labels, plain.spread(gradient)))
    values = plain.at_edges(plain.weights)
    scores = at_init.grasp(model, [(x, labels)], losses.cross_entropy, temperature)
    assert_same(scores, [w * hg for w, hg in zip(values, product, strict=True)])
    default = at_init.grasp(model, [(x, labels)], losses.cross_entropy)
    assert (temperature == 200) == all(np.array_equal(default[name], scores[name]) for name in scores)


@patient
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.floats(0, 1),
    st.integers(0, 99),
    st.integers(1, 4),
)
def test_both_are_right_on_any_structure(widths: list[int], share: float, seed: int, rows: int) -> None:
    nnz = [int(share * a * b) for a, b in pairwise(widths)]
    made = [
        layers.Linear.random(a, b, nnz=n, dtype=np.float64, seed=seed)
        for (a, b), n in zip(pairwise(widths), nnz, strict=True)
    ]
    model = layers.Chain(*[part for layer in made for part in (layer, layers.Relu())][:-1])
    x, labels = samples(rows, widths[0], widths[-1], seed)
    plain = Plain(model, 3.0)
    values, gradient = plain.at_edges(plain.weights), plain.at_edges(plain.gradients(x, labels))
    product = plain.at_edges(plain.gradients(x, labels, plain.spread(gradient)))
    if not any(g.any() for g in gradient):
        product = gradient
    scores = at_init.grasp(model, [(x, labels)], losses.cross_entropy, 3.0)
    assert_same(scores, [w * hg for w, hg in zip(values, product, strict=True)], 1e-5)


def test_grasp_sign_removing_a_low_edge_raises_the_gradient_flow() -> None:
    # y = w x, loss (y - t)²: g = 2x(wx - t), H = 2x²; w·Hg = 4x³w(wx - t).
    for w, t, sign in ((1.0, 0.0, 1), (1.0, 3.0, -1), (-1.0, -3.0, -1)):
        model = layers.Linear.from_dense(np.array([[w]]))
        scores = at_init.grasp(model, [(np.array([[1.0]]), np.array([[t]]))], losses.mse, 1.0)
        assert scores["weights"][0] == pytest.approx(4 * w * (w - t), rel=1e-6)
        assert np.sign(scores["weights"][0]) == sign


@pytest.mark.parametrize("score", [at_init.snip, at_init.grasp])
def test_batches_of_any_size_are_one_mean(score: Any) -> None:
    model, (x, labels) = a_model(activation="tanh"), samples(20)
    whole = score(model, [(x, labels)], losses.cross_entropy)
    parts = [(x[a:b], labels[a:b]) for a, b in ((0, 9), (9, 10), (10, 20))]
    assert_same(score(model, parts, losses.cross_entropy), list(whole.values()), 1e-6)
    assert_same(score(model, iter(parts), losses.cross_entropy), list(whole.values()), 1e-6)
    drawn = data.batches(x, labels, batch_size=7, seed=3, dtype=np.float64)  # in another order at each pass
    assert_same(score(model, drawn, losses.cross_entropy), list(whole.values()), 1e-6)
    assert_same(score(model, (list(p) for p in parts), losses.cross_entropy), list(whole.values()), 1e-6)


def test_grasp_differences_are_of_the_same_samples() -> None:
    # Samples drawn anew in each pass, some left out: differences between passes would be enormous.
    model, (x, labels) = a_model(activation="tanh"), samples(50)
    drawn = data.batches(x, labels, batch_size=30, seed=3, drop_last=True, dtype=np.float64)
    whole = at_init.grasp(model, [(x, labels)], losses.cross_entropy)
    some = at_init.grasp(model, drawn, losses.cross_entropy)
    assert max(np.abs(s).max() for s in some.values()) < 10 * max(np.abs(s).max() for s in whole.values())


@pytest.mark.parametrize("score", [at_init.snip, at_init.grasp])
def test_float32_models_get_float64_scores(score: Any) -> None:
    model, (x, labels) = a_model(), samples()
    exact = score(model, [(x, labels)], losses.cross_entropy)
    single = models.mlp((12, 9, 7, 4), density=0.4, allocation="uniform", seed=2)
    for name, parameter in single.parameters().items():
        if name.endswith("bias"):
            parameter += model.parameters()[name].astype(np.float32)
    scores = score(single, [(x.astype(np.float32), labels)], losses.cross_entropy)
    assert all(s.dtype == np.float64 for s in scores.values())
    assert_same(scores, list(exact.values()), 1e-4)


@pytest.mark.parametrize("score", [at_init.snip, at_init.grasp])
def test_every_kind_of_layer_and_nothing_of_the_model_changes(score: Any) -> None:
    model = layers.Chain(
        layers.Affine(6, 2.0, 1.0, dtype=np.float64),
        *small(),
        layers.LayerNorm(3, dtype=np.float64),
        layers.Residual(layers.Linear.random(3, 3, nnz=4, dtype=np.float64)),
        layers.Dense.random(3, 3, dtype=np.float64),
    )
    before = bits(model)
    x, labels = samples(8, 6, 3)
    scores = score(model, [(x, labels)], losses.cross_entropy)
    assert bits(model) == before
    assert {name: s.shape for name, s in scores.items()} == {n: (w.nnz,) for n, w in edged(model).items()}
    assert all(np.isfinite(s).all() and s.any() for s in scores.values())


def test_a_float64_copy_computes_the_same_and_shares_no_values() -> None:
    model = small(np.float32)
    model.forward(samples(8, 6)[0], training=True)  # running statistics
    copy, x = in_float64(model), samples(8, 6)[0]
    assert all(p.dtype == np.float64 for p in [*copy.parameters().values(), *copy.buffers().values()])
    np.testing.assert_allclose(copy.forward(x)[0], model.forward(x)[0], rtol=1e-5, atol=1e-5)
    before = bits(model)
    for p in copy.parameters().values():
        p.assign(0.0) if hasattr(p, "assign") else p.fill(0.0)
    assert bits(model) == before


def test_the_denser_model_is_cut_to_the_edge() -> None:
    batch = samples()
    for score in (at_init.snip, at_init.grasp):
        model = a_model()
        scores = score(model, [batch], losses.cross_entropy)
        at_init.keep_strongest(model, scores, 17)
        assert model.nnz == 17
        fresh = models.mlp((12, 9, 7, 4), nnz=at_init.counts(scores, 17), seed=5)
        assert fresh.nnz == 17
        assert [w.nnz for w in edged(fresh).values()] == [w.nnz for w in edged(model).values()]


def test_magnitude_is_the_size_of_the_weights() -> None:
    model = a_model()
    for name, score in at_init.magnitude(model).items():
        np.testing.assert_array_equal(score, np.abs(edged(model)[name].values))


def test_no_gradient_and_no_weight_is_no_trouble() -> None:
    x, target = np.ones((2, 3)), np.zeros((2, 2))
    for model in (
        layers.Linear.from_dense(np.zeros((3, 2)), threshold=-1),
        layers.Linear.random(3, 2, nnz=0),
    ):
        assert not any(s.any() for s in at_init.grasp(model, [(x, target)], losses.mse).values())
        assert not any(s.any() for s in at_init.snip(model, [(x, target)], losses.mse).values())


X, LABELS = samples(4)
BAD: list[Any] = [
    [],
    iter(()),
    None,
    3,
    [X],
    [(X,)],
    [(X, LABELS, 1)],
    [(X[:, :3], LABELS)],
    [(X, LABELS[:2])],
]


@pytest.mark.parametrize("score", [at_init.snip, at_init.grasp])
@pytest.mark.parametrize("batches", BAD)
def test_bad_batches(score: Any, batches: Any) -> None:
    with pytest.raises(GbnnError):
        score(a_model(), batches, losses.cross_entropy)


@pytest.mark.parametrize("score", [at_init.snip, at_init.grasp])
def test_numbers_that_are_not_finite_are_refused(score: Any) -> None:
    x = X.copy()
    x[1, 2] = np.nan
    with pytest.raises(NonFiniteError, match=r"batches\[1\]"):
        score(a_model(), [(X, LABELS), (x, LABELS)], losses.cross_entropy)
    model = a_model()
    edged(model)["0.weights"].assign(1e200)
    edged(model)["2.weights"].assign(1e200)
    with pytest.raises(NonFiniteError, match="gradient of"):
        score(model, [(X, LABELS)], losses.cross_entropy)


@pytest.mark.parametrize("score", [at_init.snip, at_init.grasp])
def test_other_semirings_and_losses_are_refused(score: Any) -> None:
    model = layers.Chain(layers.Linear.random(12, 4, nnz=9, semiring=semirings.max_plus, seed=0))
    with pytest.raises(GbnnError, match=r"layer 0.*plus_times"):
        score(model, [(X, LABELS)], losses.cross_entropy)
    with pytest.raises(GbnnError, match="loss"):
        score(a_model(), [(X, LABELS)], "cross_entropy")


@pytest.mark.parametrize("temperature", [0, -1.0, np.nan, None])
def test_bad_temperatures(temperature: Any) -> None:
    with pytest.raises(GbnnError, match="temperature"):
        at_init.grasp(a_model(), [(X, LABELS)], losses.cross_entropy, temperature)


def test_grasp_is_what_torch_says() -> None:
    torch: Any = pytest.importorskip("torch")
    model, (x, labels) = a_model(), samples()
    weights = [torch.tensor(w.to_dense(), requires_grad=True) for w in edged(model).values()]
    biases = [torch.tensor(p) for name, p in model.parameters().items() if name.endswith("bias")]
    masks = [(w.detach() != 0).double() for w in weights]
    y = torch.tensor(x)
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        y = (torch.relu(y) if k else y) @ w + b
    loss = torch.nn.functional.cross_entropy(y / 200, torch.tensor(labels))
    found = torch.autograd.grad(loss, weights, create_graph=True)
    flow = sum(((g * m).detach() * g).sum() for g, m in zip(found, masks, strict=True))
    products = torch.autograd.grad(flow, weights)
    scores = at_init.grasp(model, [(x, labels)], losses.cross_entropy)
    edges = [(w.sources, w.targets) for w in edged(model).values()]
    expected = [(h * w).detach().numpy()[e] for h, w, e in zip(products, weights, edges, strict=True)]
    assert_same(scores, expected)
