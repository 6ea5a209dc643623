"""Chain, Residual, Parallel and Concatenate: what they compute, the widths they know, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.layer_table import as_array

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers import (
    BatchNorm,
    Chain,
    Concatenate,
    Dense,
    Dropout,
    Identity,
    KWinners,
    Layer,
    Linear,
    Parallel,
    Relu,
    Residual,
    Sigmoid,
    Softplus,
    Tanh,
    Threshold,
)
from gbnn.rows import SparseRows

CONTAINERS = [Chain, Parallel, Concatenate]


def linear(in_features, out_features, **more):
    options = {"nnz": in_features, "dtype": np.float64, "seed": 0} | more
    return Linear.random(in_features, out_features, **options)


def batch(width, size=3):
    return np.asfortranarray(np.random.default_rng(0).standard_normal((size, width)))


class Spy(Layer):
    """The identity that remembers how it was called."""

    def __init__(self):
        self.calls = []

    def forward(self, x, *, training=False):
        self.calls.append(("forward", training))

        def back(dy, *, inputs=True):
            self.calls.append(("back", inputs))
            return dy if inputs else None, {}

        return x, back


class Scaled(Spy):
    """A spy with a parameter of its own, around another layer."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.scale = np.ones(3)

    def own_parameters(self):
        return {"scale": self.scale}

    def children(self):
        return {"inner": self.inner}


class Widening(Layer):
    """Says no width and breaks its promise to keep it."""

    def forward(self, x, *, training=False):
        return np.hstack([x, x]), None


class Widening2(Widening):
    """The same with sparse activations."""

    def forward(self, x, *, training=False):
        return SparseRows(x.starts, x.columns, x.values, (x.shape[0], 2 * x.shape[1])), None


# -- What they compute ---------------------------------------------------------------------------------------


def test_chain_is_composition():
    first, second, x = linear(5, 4), Dense.random(4, 2, dtype=np.float64), batch(5)
    chain = Chain(first, Tanh(), second)
    np.testing.assert_array_equal(chain.forward(x)[0], second.forward(np.tanh(first.forward(x)[0]))[0])
    assert len(chain) == 3
    assert list(chain) == [first, chain[1], second]


def test_residual_parallel_concatenate():
    a, b, x = linear(4, 4), linear(4, 4, seed=1), batch(4)
    ya, yb = a.forward(x)[0], b.forward(x)[0]
    np.testing.assert_allclose(Residual(a).forward(x)[0], x + ya)
    np.testing.assert_allclose(Parallel(a, b, a).forward(x)[0], ya + yb + ya)
    np.testing.assert_array_equal(Concatenate(a, Identity(), b).forward(x)[0], np.hstack([ya, x, yb]))


def test_a_network_of_one_dtype_stays_there():
    """A float64 batch does not turn the activations of a float32 network into float64."""
    narrow = Residual(linear(4, 4, dtype=np.float32))
    y, pullback = narrow.forward(batch(4))
    assert y.dtype == np.float32
    assert pullback(y)[0].dtype == np.float32


@pytest.mark.parametrize("container", [*CONTAINERS, Residual])
@pytest.mark.parametrize("training", [False, True])
def test_training_reaches_the_layers(container, training):
    spy = Spy()
    container(spy).forward(batch(3), training=training)
    assert spy.calls == [("forward", training)]


def test_chain_computes_only_the_gradients_somebody_needs():
    """Without dx, nothing before the first layer with parameters is pulled back, and that one gives no dx."""
    spies = [Spy() for _ in range(3)]
    chain = Chain(spies[0], spies[1], Chain(linear(4, 4), spies[2], linear(4, 2)))
    y, pullback = chain.forward(batch(4))
    dx, gradients = pullback(y, inputs=False)
    assert dx is None
    assert list(gradients) == ["2.0.weights", "2.0.bias", "2.2.weights", "2.2.bias"]
    assert [spy.calls[1:] for spy in spies] == [[], [], [("back", True)]]
    dx, _ = pullback(y)
    assert dx.shape == (3, 4)
    assert [spy.calls[-1] for spy in spies] == [("back", True)] * 3
    first = Scaled(Relu())
    Chain(spies[0], first, Tanh()).forward(batch(4))[1](batch(4), inputs=False)
    assert first.calls[-1] == ("back", False)
    assert Chain(Relu(), Tanh()).forward(batch(4))[1](batch(4), inputs=False) == (None, {})


def test_names():
    net = Chain(
        linear(4, 4), Residual(Chain(BatchNorm(4), linear(4, 4, bias=False))), Dense.random(4, 2, bias=False)
    )
    parameters = ["0.weights", "0.bias", "1.0.0.scale", "1.0.0.shift", "1.0.1.weights", "2.weights"]
    assert list(net.parameters()) == parameters
    assert list(net.buffers()) == ["1.0.0.mean", "1.0.0.variance"]
    assert net.parameters()["1.0.1.weights"] is net[1][0][1].weights
    assert [path for path, _ in net.walk()] == ["", "0", "1", "1.0", "1.0.0", "1.0.1", "2"]
    assert net.nnz == 4 + 4 + 8
    y, pullback = net.forward(batch(4), training=True)
    assert list(pullback(y)[1]) == parameters
    lines = net.describe().splitlines()
    assert [line.split()[0] for line in lines] == ["layer", "0", "1.0.0", "1.0.1", "2", "total"]
    assert lines[0].split()[1:] == ["kind", "shape", "nnz", "density", "bytes"]
    assert lines[1].split()[1:] == ["Linear", "plus_times", "4", "x", "4", "4", "0.25", f"{net[0].nbytes}"]


def test_a_layer_around_another_is_described_by_what_it_holds_itself():
    net = Chain(Scaled(linear(4, 4)))
    assert list(net.parameters()) == ["0.scale", "0.inner.weights", "0.inner.bias"]
    lines = net.describe().splitlines()
    assert [line.split()[0] for line in lines] == ["layer", "0", "0.inner", "total"]
    assert lines[1].split()[-1] == str(net[0].scale.nbytes)
    assert net.nbytes == net[0].scale.nbytes + net[0].inner.nbytes


# -- Sparse activations --------------------------------------------------------------------------------------


def test_sums_are_sparse_where_all_terms_are():
    x = np.array([[1.0, -2, 0, 3], [0, 0, -1, 0]])
    rows = SparseRows.from_dense(x)
    for layer, sparse in (
        (Residual(KWinners(1)), True),
        (Residual(Sigmoid()), False),
        (Parallel(KWinners(1), Tanh()), True),
        (Parallel(KWinners(1), Softplus()), False),
    ):
        y, pullback = layer.forward(rows)
        assert isinstance(y, SparseRows) == sparse
        dy = np.arange(8.0).reshape(2, 4)
        dx, _ = pullback(dy)
        assert dx.columns is rows.columns
        expected = layer.forward(x)[1](dy)[0]
        np.testing.assert_allclose(dx.values, as_array(expected)[rows.rows, rows.columns])
    assert isinstance(Residual(KWinners(1)).forward(x)[0], np.ndarray)


def test_a_sum_of_0_is_an_entry_and_has_a_gradient():
    class Minus(Spy):
        def forward(self, x, *, training=False):
            return x.with_values(-x.values), lambda dy, *, inputs=True: (dy.with_values(-dy.values), {})

    rows = SparseRows.from_dense([[1.0, 0, 2.0]])
    y, pullback = Residual(Chain(Minus(), KWinners(1))).forward(rows)
    assert y.values.tolist() == [0, 2]
    assert pullback(np.array([[3.0, 5, 7]]))[0].values.tolist() == [0, 7]


def test_columns_side_by_side_are_sparse_where_any_are():
    rows = SparseRows(np.array([0, 1]), np.array([2**58]), np.array([3.0]), (1, 2**59))
    wide = Concatenate(Identity(), Chain(Threshold(1.0), Tanh()))
    y, pullback = wide.forward(rows)
    assert y.shape == (1, 2**60)
    assert y.columns.tolist() == [2**58, 2**58 + 2**59]
    assert pullback(y.with_values(np.array([1.0, 0.0])))[0].values.tolist() == [1]
    with pytest.raises(ArgumentError, match=r"Concatenate\.forward"):
        Concatenate(Identity(), wide).forward(rows)


def test_shapes_that_differ_are_refused():
    rows = SparseRows.from_dense([[1.0, 0, 2.0]])
    with pytest.raises(ArgumentError, match="Residual"):
        Residual(Widening2()).forward(rows)
    with pytest.raises(ArgumentError, match="Parallel"):
        Parallel(Identity(), Widening2()).forward(rows)


# -- Widths --------------------------------------------------------------------------------------------------


def test_chain_knows_its_widths():
    chain = Chain(Relu(), Dropout(0.5, seed=0), linear(5, 7), Tanh(), linear(7, 3), Relu())
    assert (chain.in_features, chain.out_features) == (5, 3)
    assert Chain(Relu(), Tanh()).in_features is Chain(Relu(), Tanh()).out_features is None
    assert (Chain(linear(5, 7), Relu()).in_features, Chain(linear(5, 7), Relu()).out_features) == (5, 7)


def test_layers_that_widen_whatever_comes():
    twice = Concatenate(Relu(), Identity())
    assert twice.in_features is twice.out_features is None
    assert twice.width_after(4) == 8
    assert twice.width_after(None) is None
    after = Chain(linear(5, 4), twice, linear(8, 3))
    assert (after.in_features, after.out_features) == (5, 3)
    assert after.forward(batch(5))[0].shape == (3, 3)
    before = Chain(twice, linear(8, 4))  # takes 4, which it cannot know; but nothing wrong either
    assert (before.in_features, before.out_features) == (None, 4)
    assert before.forward(batch(4))[0].shape == (3, 4)
    assert Chain(linear(5, 4), twice).out_features == 8
    assert Concatenate(linear(5, 4), Relu()).out_features == 9
    assert Concatenate(twice, twice).width_after(2) == 8
    assert Parallel(twice, twice).width_after(2) == 4
    with pytest.raises(ArgumentError, match="Parallel: expected branches of equal out_features"):
        Parallel(Relu(), twice)  # at no width


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_network_of_containers_knows_its_width(data):
    """Whatever is built at a known width: if it can be built, it computes what it says."""

    def layer(width, depth):
        kinds = ["relu", "linear"] + (["chain", "residual", "parallel", "concatenate"] if depth else [])
        kind = data.draw(st.sampled_from(kinds))
        if kind == "relu":
            return Relu()
        if kind == "linear":
            return linear(width, data.draw(st.integers(1, 3)))
        if kind == "residual":
            return Residual(layer(width, depth - 1))
        inner = []
        for _ in range(data.draw(st.integers(1, 3))):
            inner.append(layer(width, depth - 1))
            width = inner[-1].width_after(width) if kind == "chain" else width
        return {"chain": Chain, "parallel": Parallel, "concatenate": Concatenate}[kind](*inner)

    width = data.draw(st.integers(1, 3))
    try:
        net = layer(width, 3)
    except ArgumentError:
        return  # branches that do not fit
    y, pullback = net.forward(batch(width))
    assert net.in_features in (None, width)
    assert net.out_features in (None, y.shape[1])
    assert net.width_after(width) == y.shape[1]
    dx, gradients = pullback(y)
    assert dx.shape == (3, width)
    assert set(gradients) == set(net.parameters())


# -- Bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_needs_layers(container):
    with pytest.raises(ArgumentError, match="at least one layer"):
        container()
    for wrong in (None, "relu", Relu, np.eye(2), [Relu()]):
        with pytest.raises(KindError, match=rf"{container.__name__} layer 1: expected a gbnn Layer"):
            container(Relu(), wrong)
    with pytest.raises(KindError, match="Residual layer 0"):
        Residual(None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Chain(linear(5, 4), Relu(), linear(3, 2)), "Chain layer 2: expected 4 inputs.*got 3"),
        (lambda: Chain(Concatenate(linear(5, 4), Relu()), linear(5, 2)), "Chain layer 1: expected 9 inputs"),
        (lambda: Chain(linear(5, 4), Chain(Relu(), linear(3, 2))), "Chain layer 1: expected 4 inputs"),
        (lambda: Residual(linear(5, 4)), "Residual"),
        (lambda: Residual(Concatenate(Relu(), Relu())), "Residual"),
        (lambda: Residual(Chain(linear(5, 4), Relu())), "Residual"),
        (lambda: Parallel(linear(5, 4), linear(5, 3)), "Parallel.*equal out_features.*4, 3"),
        (lambda: Parallel(linear(5, 4), Relu()), "Parallel.*equal out_features.*4, 5"),
        (lambda: Parallel(linear(5, 4), linear(3, 4)), "Parallel.*equal in_features.*5, 3"),
        (lambda: Concatenate(linear(5, 4), linear(3, 4)), "Concatenate.*equal in_features.*5, 3"),
    ],
)
def test_widths_that_do_not_fit(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_layers_that_break_their_promise():
    for net, x in [
        (Residual(Widening()), batch(3)),
        (Residual(Widening()), batch(1)),  # would be broadcast silently
        (Parallel(Relu(), Widening()), batch(1)),
    ]:
        with pytest.raises(GbnnError, match="shape"):
            net.forward(x)
