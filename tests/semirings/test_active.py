"""Products with sparse rows: against their definition, dense products and GraphBLAS; what they cost."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphblas import semiring as operators
from hypothesis import given, settings
from hypothesis import strategies as st
from support.active_definition import defined_adjoint, defined_product, rows_of
from support.memory import peak_while
from support.products import DIFFERENTIABLE, SEMIRINGS, ordinary, scattered_products, tied_products

from gbnn import layers, storage
from gbnn.errors import ArgumentError, KindError
from gbnn.rows import SparseRows
from gbnn.semirings import ActiveProbe, TouchedGradient, min_plus, plus_times
from gbnn.weights import Weights

FORMS = ["dense", "sparse"]
# A first example compiles; semirings are tried in float64 only, plus_times in both.
drawn = settings(deadline=None, max_examples=15)


def filled(semiring, y, shape):
    """Return y as a dictionary and, where it is dense, check that nothing else is in it."""
    if isinstance(y, SparseRows):
        return dict(
            zip(zip(y.rows.tolist(), y.columns.tolist(), strict=True), y.values.tolist(), strict=True)
        )
    assert y.flags.f_contiguous
    assert y.shape == shape
    return {(b, j): y[b, j] for b in range(shape[0]) for j in range(shape[1])}


def check(semiring, product, present, form, bias, dy_present):
    """Compare a product and its pullback with their definitions."""
    x = rows_of(present, product.x)
    shape = (x.shape[0], product.weights.out_features)
    y, pullback = semiring.product(x, product.weights, bias, form=form)
    expected = defined_product(semiring, x, product.weights, bias)
    came = filled(semiring, y, shape)
    if form == "sparse":
        assert sorted(came) == list(came) == sorted(expected)
    for place, value in came.items():
        wanted = expected.get(place, semiring.identity)
        assert value == pytest.approx(wanted, rel=1e-12, abs=1e-12), place
    if semiring.partials is None:
        return
    for dy in (product.dy, rows_of(dy_present, product.dy)):
        numbers = {place: (dy if isinstance(dy, np.ndarray) else dy.to_dense())[place] for place in came}
        dx, gradients = pullback(dy)
        by_x, by_w, by_bias = defined_adjoint(semiring, x, product.weights, bias, came, numbers)
        assert dx.same_pattern(x)
        assert isinstance(gradients["weights"], TouchedGradient)
        near = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(dx.values, by_x, **near)
        np.testing.assert_allclose(np.asarray(gradients["weights"]), by_w, **near)
        if bias is not None:
            np.testing.assert_allclose(np.asarray(gradients["bias"]), by_bias, **near)
        nothing, alone = pullback(dy, inputs=False)
        assert nothing is None
        np.testing.assert_array_equal(np.asarray(alone["weights"]), np.asarray(gradients["weights"]))


@st.composite
def masks(draw, shape):
    """Which entries are there: none, all, or any of them."""
    some = draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(some).reshape(shape)


@pytest.mark.parametrize("semiring", SEMIRINGS.values(), ids=str)
def test_is_as_defined(semiring):
    """One test a semiring, for each compiles its loops once."""

    @drawn
    @given(data=st.data())
    def law(data):
        product = data.draw(st.one_of(scattered_products(semiring), tied_products(semiring, np.float64)))
        present = data.draw(masks(product.x.shape))
        dy_present = data.draw(masks(product.dy.shape))
        for form in FORMS:
            check(semiring, product, present, form, None, dy_present)
        if semiring.one is not None:
            check(semiring, product, present, "dense", product.bias, dy_present)

    law()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_equals_the_dense_product(dtype, form):
    product = ordinary(dtype)
    present = np.random.default_rng(1).random(product.x.shape) < 0.4
    dense = np.asfortranarray(np.where(present, product.x, 0))
    y, pullback = plus_times.product(rows_of(present, product.x), product.weights, form=form)
    wanted, back = plus_times.product(dense, product.weights)
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(y if form == "dense" else y.to_dense(), wanted, **near)
    assert y.dtype == dtype
    (dx, gradients), (by_x, by_w) = pullback(product.dy), back(product.dy)
    np.testing.assert_allclose(dx.values, by_x[dx.rows, dx.columns], **near)
    np.testing.assert_allclose(np.asarray(gradients["weights"]), np.asarray(by_w["weights"]), **near)
    assert gradients["weights"].values.dtype == dx.dtype == dtype


@pytest.mark.parametrize("width", [50, 2**60])
def test_equals_graphblas(width):
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(width, 50, replace=False) if width < 100 else rng.integers(0, width, 50))
    sources, targets = rng.integers(0, 50, (2, 400))
    pairs = np.unique(np.stack([sources, targets]), axis=1)
    weights = Weights.from_coo(*some[pairs], rng.standard_normal(pairs.shape[1]), (width, width))
    starts = np.arange(21) * 10
    columns = np.concatenate([np.sort(some[rng.choice(50, 10, replace=False)]) for _ in range(20)])
    x = SparseRows(starts, columns, rng.standard_normal(200).astype(np.float32), (20, width))
    y, _ = plus_times.product(x, weights, form="sparse")
    theirs = SparseRows.of(operators.plus_times(x.to_graphblas() @ weights.to_graphblas()).new())
    assert y.same_pattern(theirs)
    np.testing.assert_allclose(y.values, theirs.values, rtol=1e-5, atol=1e-5)


def test_form_follows_how_much_is_filled():
    layer = layers.Linear.random(10_000, 10_000, nnz=50_000, bias=False, seed=0)
    few = SparseRows(np.arange(33), np.arange(32), np.ones(32, np.float32), (32, 10_000))
    assert isinstance(layer.forward(few)[0], SparseRows)
    many = SparseRows.from_dense(np.ones((32, 10_000), np.float32))
    assert isinstance(layer.forward(many)[0], np.ndarray)
    narrow = layers.Linear.random(10_000, 10, nnz=5000, bias=False, seed=0)
    assert isinstance(narrow.forward(few)[0], np.ndarray)
    biased = layers.Linear.random(10_000, 10_000, nnz=50_000, seed=0)
    assert isinstance(biased.forward(few)[0], np.ndarray)


# -- Biases --------------------------------------------------------------------------------------------------


def test_bias_on_active_outputs():
    weights = Weights.from_coo([0, 1, 1], [0, 0, 2], [1.0, 2.0, 3.0], (3, 4), dtype=np.float64)
    bias = np.array([10.0, 20.0, 30.0, 40.0])
    x = SparseRows.from_dense([[1.0, 0.0, 5.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    wanted = [[11.0, 0.0, 0.0, 0.0], [13.0, 0.0, 33.0, 0.0], [0.0] * 4]
    dy = np.arange(1.0, 13.0).reshape(3, 4)
    for form in FORMS:
        layer = layers.Linear(weights, bias, bias_on="active", output=form)
        y, pullback = layer.forward(x)
        np.testing.assert_array_equal(y if form == "dense" else y.to_dense(), wanted)
        dx, gradients = pullback(dy)
        np.testing.assert_array_equal(np.asarray(gradients["bias"]), [1.0 + 5.0, 0.0, 7.0, 0.0])
        np.testing.assert_array_equal(np.asarray(gradients["weights"]), [1.0 + 5.0, 5.0, 7.0])
        np.testing.assert_array_equal(dx.values, [1.0, 0.0, 5.0, 10.0 + 21.0, 0.0])
        # A dense batch is read as its entries that are not 0.
        other, back = layer.forward(x.to_dense())
        np.testing.assert_array_equal(other if form == "dense" else other.to_dense(), wanted)
        np.testing.assert_array_equal(back(dy)[0], dx.to_dense())


def test_refusals():
    layer = layers.Linear.random(4, 3, nnz=5, seed=0)
    x = SparseRows.from_dense(np.eye(4, dtype=np.float32))
    with pytest.raises(ArgumentError, match=r"bias.*active outputs"):
        plus_times.product(x, layer.weights, layer.bias, form="sparse")
    with pytest.raises(ArgumentError, match=r"shape \(batch, 4\)"):
        plus_times.product(SparseRows.from_dense(np.eye(3)), layer.weights)
    y, pullback = plus_times.product(x, layer.weights, form="sparse")
    with pytest.raises(ArgumentError, match="dy"):
        pullback(SparseRows.from_dense(np.ones((4, 4))))
    with pytest.raises(ArgumentError, match="dy"):
        pullback(np.ones((4, 4)))
    layer.weights.add(np.ones(5))
    with pytest.raises(ArgumentError, match="as they were at the forward pass"):
        pullback(y)
    for options in ({"bias_on": "some"}, {"output": "full"}, {"bias_on": "active", "semiring": min_plus}):
        with pytest.raises(ArgumentError):
            layers.Linear.random(4, 3, nnz=5, seed=0, **options)
    with pytest.raises(ArgumentError, match="forward-only"):
        SEMIRINGS["lor_land"].product(x, layer.weights)[1](np.ones((4, 3)))
    wide = layers.Linear.random(4, 2**40, nnz=5, bias=False, output="dense", seed=0)
    with pytest.raises(ArgumentError, match="outputs in a dense batch"):
        wide.forward(x)
    with pytest.raises(KindError):
        layer.forward("x")


# -- Cost ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [10**6, 2**60])
def test_memory_of_a_step_is_that_of_its_active_edges(width):
    """With 400,000 edges, 3.2 MB an index, 1,600 active edges take less than a tenth of that."""
    layer = layers.Linear.random(width, width, nnz=400_000, bias=False, seed=0)
    rng = np.random.default_rng(0)
    ids = layer.weights.edges.by_source.ids
    columns = np.concatenate([np.sort(rng.choice(ids, 50, replace=False)) for _ in range(32)])
    x = SparseRows(np.arange(33) * 50, columns, np.ones(1600, np.float32), (32, width))

    def step():
        y, pullback = layer.forward(x)
        return pullback(y.with_values(np.ones_like(y.values)))

    step()  # what is kept from step to step is made
    peak, (_, gradients) = peak_while(step)
    assert gradients["weights"].positions.size >= 1500
    assert peak < 320_000


def test_only_plus_times_is_probed():
    product = ordinary()
    x = SparseRows.from_dense(product.x)
    for semiring in DIFFERENTIABLE:
        if semiring in (plus_times, min_plus):
            gradient = semiring.product(x, product.weights)[1](product.dy)[1]["weights"]
            if semiring is plus_times:
                assert isinstance(gradient.probe, ActiveProbe)
                dense = product.x.T @ product.dy
                compact = gradient.probe.compact()
                np.testing.assert_allclose(compact.probe.block(0, 9), dense[compact.sources])
            else:
                with pytest.raises(ArgumentError, match="plus_times"):
                    _ = gradient.probe


def test_threads_do_not_share_scratch():
    layer = layers.Linear.random(2000, 3000, nnz=20_000, bias=False, output="sparse", seed=0)
    rng = np.random.default_rng(0)
    batches = [SparseRows.from_dense((rng.random((20, 2000)) < 0.02).astype(np.float32)) for _ in range(8)]
    wanted = [layer.forward(x)[0] for x in batches]
    came = [None] * 8

    def run(k):
        for _ in range(20):
            came[k] = layer.forward(batches[k])[0]

    workers = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for y, expected in zip(came, wanted, strict=True):
        assert y.same_pattern(expected)
        np.testing.assert_array_equal(y.values, expected.values)


def test_bits_do_not_depend_on_threads():
    layer = layers.Linear.random(3000, 4000, nnz=60_000, bias=False, seed=0)
    x = SparseRows.from_dense((np.random.default_rng(0).random((64, 3000)) < 0.05).astype(np.float32))
    came = []
    before = storage.threads()
    for count in (1, before):
        storage.set_threads(count)
        for form in FORMS:
            y, pullback = plus_times.product(x, layer.weights, form=form)
            dx, gradients = pullback(np.ones((64, 4000)))
            came.append(
                (
                    np.asarray(y if form == "dense" else y.values),
                    dx.values,
                    np.asarray(gradients["weights"]),
                )
            )
    storage.set_threads(before)
    for k in (0, 1):
        for one, other in zip(came[k], came[k + 2], strict=True):
            np.testing.assert_array_equal(one, other)
