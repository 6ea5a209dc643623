"""Using a model: outputs in pieces are outputs at once, and what predictions and scores are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gbnn import layers, losses, models, semirings, training
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Layer
from gbnn.rows import SparseRows, stored
from gbnn.training.evaluate import in_order

Array = np.ndarray[Any, Any]

ROWS = 37


def samples(seed: int = 0) -> Array:
    x = np.random.default_rng(seed).standard_normal((ROWS, 8))
    return np.where(np.abs(x) < 0.5, 0, x)


def trained(dtype: Any = np.float32) -> Layer:
    """A model whose training and evaluation differ: dropout, running statistics."""
    model = models.mlp([8, 30, 20, 4], nnz=[90, 90, 80], dropout=0.5, normalize="batch", dtype=dtype, seed=0)
    training.fit(model, (samples(1), np.arange(ROWS) % 4), epochs=2)
    return model


MODELS: dict[str, Callable[[], Layer]] = {
    "float32": trained,
    "float64": lambda: trained(np.float64),
    "min_plus": lambda: models.mlp([8, 20, 4], nnz=[60, 40], semiring=semirings.min_plus, seed=0),
    "no parameters": layers.Relu,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


@every_model
@pytest.mark.parametrize("size", [1, 7, 36, 37, 38, 1024])
def test_outputs_in_pieces_are_outputs_at_once(make: Callable[[], Layer], size: int) -> None:
    model, x = make(), samples()
    expected, _ = model.forward(x.astype(np.float64 if make is MODELS["float64"] else np.float32))
    y = training.outputs(model, x, batch_size=size)
    assert y.dtype == expected.dtype
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(y, training.outputs(model, x, batch_size=size))


@every_model
@pytest.mark.parametrize(
    "kind", [sp.csr_array, sp.csc_array, sp.coo_matrix, np.asfortranarray, np.ndarray.tolist]
)
def test_outputs_of_any_kind_of_rows(make: Callable[[], Layer], kind: Callable[..., Any]) -> None:
    model, x = make(), samples()
    y = training.outputs(model, kind(x))
    if not sp.issparse(kind(x)):
        np.testing.assert_array_equal(y, training.outputs(model, x))
        return
    # Absent entries are the identity of ⊕, which is 0 in plus_times alone; rounding has another order.
    dtype = np.float64 if make is MODELS["float64"] else np.float32
    expected = stored(model.forward(SparseRows.of(kind(x), dtype=dtype))[0])
    np.testing.assert_allclose(y if expected.ndim == 2 else y[y != 0], expected, rtol=1e-5, atol=1e-6)
    if make is not MODELS["min_plus"]:
        np.testing.assert_allclose(y, training.outputs(model, x), rtol=1e-5, atol=1e-6)


def test_evaluation_changes_nothing() -> None:
    model, x = trained(), samples()
    buffers = {name: array.copy() for name, array in model.buffers().items()}
    first = training.outputs(model, x)
    np.testing.assert_array_equal(training.outputs(model, x), first)
    for name, array in model.buffers().items():
        np.testing.assert_array_equal(array, buffers[name])
    assert not np.allclose(model.forward(x, training=True)[0], first)  # in training it would be another


def test_classes() -> None:
    model, x = trained(), samples()
    y = training.outputs(model, x)
    for loss in (losses.cross_entropy, losses.hinge):
        guess = training.predict(model, x, loss=loss, batch_size=5)
        np.testing.assert_array_equal(guess, y.argmax(axis=1))
        assert guess.dtype == np.int64
    assert len(set(guess.tolist())) > 1
    chances = training.predict_proba(model, x, batch_size=5)
    exps = np.exp(y.astype(np.float64))
    np.testing.assert_allclose(chances, exps / exps.sum(axis=1, keepdims=True), rtol=1e-5)
    with pytest.raises(ArgumentError, match="probabilities"):
        training.predict_proba(model, x, loss=losses.hinge)


def test_labels() -> None:
    model, x = trained(), samples()
    y = training.outputs(model, x)
    loss = losses.binary_cross_entropy
    guess = training.predict(model, x, loss=loss)
    np.testing.assert_array_equal(guess, y > 0)
    assert guess.dtype == np.bool_
    np.testing.assert_allclose(training.predict_proba(model, x, loss=loss), 1 / (1 + np.exp(-y)), rtol=1e-5)


def test_numbers() -> None:
    model, x = trained(), samples()
    np.testing.assert_array_equal(training.predict(model, x, loss=losses.mse), training.outputs(model, x))
    with pytest.raises(ArgumentError, match="probabilities"):
        training.predict_proba(model, x, loss=losses.mse)


TARGETS: dict[str, tuple[losses.Loss, Any, set[str]]] = {
    "cross_entropy": (losses.cross_entropy, np.arange(ROWS) % 4, {"accuracy"}),
    "hinge": (losses.hinge, (np.arange(ROWS) % 4).astype(np.uint8), {"accuracy"}),
    "binary_cross_entropy": (losses.binary_cross_entropy, samples(2)[:, :4] > 0, {"accuracy"}),
    "binary_cross_entropy, CSR": (
        losses.binary_cross_entropy,
        sp.csr_array((samples(2)[:, :4] > 0).astype(float)),
        {"accuracy"},
    ),
    "mse": (losses.mse, samples(2)[:, :4], {"r2"}),
    "huber": (losses.huber, samples(2)[:, :4].tolist(), {"r2"}),
}


@pytest.mark.parametrize(("loss", "target", "metrics"), TARGETS.values(), ids=TARGETS.keys())
def test_evaluate(loss: losses.Loss, target: Any, metrics: set[str]) -> None:
    model, x = trained(np.float64), samples()
    y, _ = model.forward(x)
    expected = {"loss": loss(y, target)[0], **loss.metrics(y, target)}
    assert set(expected) == {"loss"} | metrics
    for size in (5, 1024):
        result = training.evaluate(model, (x, target), loss=loss, batch_size=size)
        assert result == pytest.approx(expected, rel=1e-9)
    assert training.evaluate(model, [sp.csr_array(x), target], loss=loss) == pytest.approx(expected, rel=1e-9)


def test_one_sample() -> None:
    model, x = trained(), samples()
    assert training.outputs(model, x[:1]).shape == (1, 4)
    assert training.evaluate(model, (x[:1], [2]))["accuracy"] in (0.0, 1.0)


def test_wide_models_take_fewer_rows_at_a_time() -> None:
    for widths in ([60_000_000, 2], [8, 60_000_000]):
        model = models.mlp(widths, nnz=10, seed=0)
        x = sp.csr_array((40, widths[0]), dtype=np.float32)  # all its rows at once would not even be allowed
        assert in_order(model, x).batch_size in (1, 1024)  # by whether the layer's output is an array
    assert in_order(trained(), samples()).batch_size == 1024
    assert in_order(trained(), samples(), 5).batch_size == 5


def wide() -> Layer:
    """A model whose hidden activations no array could hold."""
    first = layers.Linear.random(8, 2**40, nnz=200, bias=False, seed=0)
    edges, _ = Edges.from_coo(first.weights.to_coo()[1], np.arange(200) % 4, (2**40, 4))
    return layers.Chain(first, layers.KWinners(5), layers.Linear.from_edges(edges, seed=1))


def test_sparse_activations_of_any_width_keep_the_batch_size() -> None:
    model, x = wide(), sp.csr_array(samples())
    assert in_order(model, x).batch_size == 1024
    y = training.outputs(model, x)
    assert y.shape == (ROWS, 4)
    assert np.abs(y).max() > 0
    np.testing.assert_allclose(y, training.outputs(model, x, batch_size=5), rtol=1e-5, atol=1e-6)
    assert np.array_equal(training.predict(model, x), y.argmax(axis=1))


def test_a_wide_dense_layer_among_sparse_ones_counts() -> None:
    first = layers.Linear.random(8, 2**22, nnz=200, bias=True, output="dense", seed=0)
    assert in_order(layers.Chain(first, layers.KWinners(5)), sp.csr_array(samples())).batch_size == 4
    sparse = layers.Linear.random(8, 2**22, nnz=200, bias=False, output="sparse", seed=0)
    assert in_order(layers.Chain(sparse, layers.KWinners(5)), sp.csr_array(samples())).batch_size == 1024


def test_sparse_outputs_become_an_array_where_it_is_of_a_size() -> None:
    x = samples()
    y = training.outputs(layers.KWinners(2), x)
    assert isinstance(y, np.ndarray)
    expected = layers.KWinners(2).forward(x)[0].to_dense()
    np.testing.assert_array_equal(y, expected.astype(y.dtype))
    with pytest.raises(
        ArgumentError, match=rf"model: expected outputs that fit in an array of .*{2**40}, sparse"
    ):
        training.outputs(layers.Linear.random(8, 2**40, nnz=9, bias=False, seed=0), sp.csr_array(x))


def test_overflow_is_infinite_without_a_warning() -> None:
    model = layers.Dense(np.full((8, 2), 3e38, dtype=np.float32))
    assert np.isinf(training.outputs(model, np.full((3, 8), 10.0))).all()


X = samples()
NAN = X.copy()
NAN[5, 2] = np.nan


@pytest.mark.parametrize("use", [training.outputs, training.predict, training.predict_proba])
@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (X[:0], ArgumentError),
        (X[:, :7], ArgumentError),
        (X[0], ArgumentError),
        ([], ArgumentError),
        (sp.csr_array(X[:, :7]), ArgumentError),
        (NAN, NonFiniteError),
        (sp.csr_array(NAN), NonFiniteError),
        (X * 1e300, ArgumentError),
        (X.astype(str), KindError),
        (X * 1j, KindError),
        (None, KindError),
        ([[1.0] * 8, [1.0] * 7], KindError),
    ],
    ids=str,
)
def test_bad_rows(use: Callable[..., Array], x: Any, kind: type[GbnnError]) -> None:
    with pytest.raises(kind, match=r"^x: expected "):
        use(trained_once(), x)


_TRAINED: list[Layer] = []


def trained_once() -> Layer:
    if not _TRAINED:
        _TRAINED.append(trained())
    return _TRAINED[0]


@pytest.mark.parametrize("use", [training.outputs, training.predict, training.predict_proba])
@pytest.mark.parametrize(
    ("options", "kind"),
    [({"batch_size": 0}, ArgumentError), ({"batch_size": 1.5}, KindError), ({"model": "x"}, KindError)],
    ids=str,
)
def test_bad_arguments(use: Callable[..., Array], options: dict[str, Any], kind: type[GbnnError]) -> None:
    (name,) = options
    arguments = {"model": trained_once()} | options
    with pytest.raises(kind, match=f"^{name}: expected "):
        use(x=X, **arguments)


@pytest.mark.parametrize("use", [training.predict, training.predict_proba, training.evaluate])
def test_a_loss_by_name_is_no_loss(use: Callable[..., Any]) -> None:
    data = (X, [0] * ROWS) if use is training.evaluate else X
    with pytest.raises(KindError, match=r"^loss: expected "):
        use(trained_once(), data, loss="mse")


@pytest.mark.parametrize(
    ("data", "kind", "where"),
    [
        (5, KindError, "data"),
        ((X,), ArgumentError, "data"),
        ((X[:0], []), ArgumentError, "x"),
        ((NAN, [0] * ROWS), NonFiniteError, "x"),
        ((X, [0] * 5), ArgumentError, "target"),
        ((X, [4] * ROWS), ArgumentError, "target"),
        ((X, [-1] * ROWS), ArgumentError, "target"),
        ((X, [0.5] * ROWS), KindError, "target"),
        ((X, None), KindError, "target"),
    ],
    ids=str,
)
def test_bad_data(data: Any, kind: type[GbnnError], where: str) -> None:
    with pytest.raises(kind, match=f"^{where}: expected "):
        training.evaluate(trained_once(), data)
