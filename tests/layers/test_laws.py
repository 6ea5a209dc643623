"""One table of all layers, and what every layer must do."""

from __future__ import annotations

import copy
import inspect
import json

import graphblas as gb
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes
from support.adjoint import check_layer_pullback
from support.layer_table import ROWS, TABLE, ArraysOut, as_array, batch

from gbnn import layers
from gbnn.errors import GbnnError
from gbnn.layers import Layer
from gbnn.semirings import Semiring
from gbnn.weights import Weights


def test_every_layer_has_a_row():
    public = {value for name in layers.__all__ if inspect.isclass(value := getattr(layers, name))}
    concrete = {c for c in public if issubclass(c, Layer) and not inspect.isabstract(c)}
    # The output of ManyLabels is no array: its laws are in tests/layers/test_head.py.
    assert concrete - {layers.ManyLabels} == {type(row.make()) for row in TABLE.values()}
    assert len(concrete) >= 17


# -- Derivatives ---------------------------------------------------------------------------------------------


@ROWS
def test_adjoint(row):
    check_layer_pullback(row.arrays(), batch(row), unused=row.unused)
    if not row.random:
        check_layer_pullback(row.arrays(), batch(row), training=True, unused=row.unused)


@ROWS
@pytest.mark.parametrize("training", [False, True])
def test_gradients_do_not_depend_on_whether_dx_is_wanted(row, training):
    layer, x = row.arrays(), batch(row)
    y, pullback = layer.forward(x, training=training)
    dy = np.asfortranarray(np.random.default_rng(1).standard_normal(y.shape))
    dx, gradients = pullback(dy)
    _, alone = pullback(dy, inputs=False)
    assert dx.shape == x.shape
    assert set(gradients) == set(alone) == set(layer.parameters())
    for name, gradient in gradients.items():
        assert np.shape(gradient) == (
            (p.nnz,) if isinstance(p := layer.parameters()[name], Weights) else p.shape
        )
        np.testing.assert_array_equal(np.asarray(alone[name]), np.asarray(gradient), err_msg=name)


@ROWS
def test_pullback_leaves_its_arguments_alone(row):
    layer, x = row.arrays(), batch(row)
    kept = x.copy()
    y, pullback = layer.forward(x)
    y_kept = y.copy()
    dy = np.asfortranarray(np.ones(y.shape))
    pullback(dy)
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(y, y_kept)
    np.testing.assert_array_equal(dy, 1.0)


# -- Inputs --------------------------------------------------------------------------------------------------


@ROWS
def test_any_order_and_dtype_gives_equal_results(row):
    whole = np.random.default_rng(0).integers(0, 3, (4, row.width))  # the same number in every dtype
    expected, pullback = row.arrays().forward(np.asfortranarray(whole, dtype=np.float64))
    dx, _ = pullback(np.ones_like(expected))
    assert expected.flags.f_contiguous
    strided = np.zeros((8, 2 * row.width))
    strided[::2, ::2] = whole
    forms = [whole.astype(t) for t in ("f4", "f8", "f2", "i1", "u2", "i8", ">f8", ">i4", "longdouble")]
    forms += [whole.astype(float), strided[::2, ::2], np.array(whole[::-1], order="C")[::-1]]
    forms += [whole.tolist(), [tuple(r) for r in whole.tolist()]]
    for x in forms:
        y, pullback = row.arrays().forward(x)
        assert type(y) is np.ndarray
        assert y.flags.f_contiguous
        assert y.dtype in (np.float32, np.float64)
        np.testing.assert_allclose(y, expected, rtol=2e-6, atol=2e-6)
        for dy in (np.ones(y.shape), np.ones(y.shape, dtype=int, order="F"), np.ones(y.shape).tolist()):
            np.testing.assert_allclose(pullback(dy)[0], dx, rtol=2e-6, atol=2e-6)
    flags = whole > 0
    by_flags, by_numbers = (row.arrays().forward(x)[0] for x in (flags, flags.astype(float)))
    np.testing.assert_allclose(by_flags, by_numbers, rtol=2e-6, atol=2e-6)


@ROWS
def test_read_only_input(row):
    x = batch(row)
    expected = row.arrays().forward(x)[0]
    x.flags.writeable = False
    y, pullback = row.arrays().forward(x)
    np.testing.assert_array_equal(y, expected)
    dy = np.ones(y.shape)
    dy.flags.writeable = False
    pullback(dy)


@ROWS
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("extreme", [np.nan, np.inf, -np.inf, 1.7e308, -1.7e308])
def test_extreme_numbers_do_not_warn(row, training, extreme):
    """They follow IEEE arithmetic; training itself looks for what is not finite (here a warning fails)."""
    layer, x = row.arrays(), batch(row)
    x[1] = extreme
    x[2, ::2] = -extreme
    y, pullback = layer.forward(x, training=training)
    for dy in (np.full(y.shape, 1.7e308), np.full(y.shape, extreme)):
        _, gradients = pullback(np.asfortranarray(dy))
        for gradient in gradients.values():
            np.asarray(gradient)


@ROWS
def test_samples_do_not_mix(row):
    """Outside of training; so a batch of one is nothing special."""
    layer, x = row.arrays(), batch(row)
    y, pullback = layer.forward(x)
    dx, _ = pullback(np.ones_like(y))
    for b in range(len(x)):
        one, back = layer.forward(x[b : b + 1])
        assert one.flags.f_contiguous
        np.testing.assert_allclose(one, y[b : b + 1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(back(np.ones_like(one))[0], dx[b : b + 1], rtol=1e-12, atol=1e-14)


# -- Saving, describing --------------------------------------------------------------------------------------


def restored(layer: Layer) -> Layer:
    """Make a layer again from what a file holds: JSON, arrays that nobody else has, children."""
    config = {
        k: v if isinstance(v, Semiring) else json.loads(json.dumps(v)) for k, v in layer.config().items()
    }
    arrays = copy.deepcopy({**layer.own_parameters(), **layer.own_buffers()})
    for array in arrays.values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False  # as those of a mapped file
    return type(layer).restore(config, arrays, {name: restored(c) for name, c in layer.children().items()})


@ROWS
def test_restored_layer_computes_the_same(row):
    layer, x = row.arrays(), batch(row)
    layer.forward(batch(row, seed=5), training=True)  # moves running statistics and generators
    again = ArraysOut(restored(layer.layer))
    assert repr(again.layer) == repr(layer.layer)
    assert set(again.parameters()) == set(layer.parameters())
    for training in (False, True):
        y, pullback = layer.forward(x, training=training)
        same, back = again.forward(x, training=training)
        np.testing.assert_array_equal(same, y)
        (dx, gradients), (dx_again, gradients_again) = pullback(y), back(y)
        np.testing.assert_array_equal(dx_again, dx)
        for name, gradient in gradients.items():
            np.testing.assert_array_equal(np.asarray(gradients_again[name]), np.asarray(gradient))


@ROWS
def test_restored_layer_shares_no_array(row):
    layer, x = row.make(), batch(row)
    expected = as_array(layer.forward(x)[0])
    for array in (*(again := restored(layer)).parameters().values(), *again.buffers().values()):
        array.assign(0.0) if isinstance(array, Weights) else array.fill(0.0)
    np.testing.assert_array_equal(as_array(layer.forward(x)[0]), expected)


@ROWS
def test_restore_refuses_other_arrays(row):
    layer = row.make()
    own = {**layer.own_parameters(), **layer.own_buffers()}
    children = layer.children()
    with pytest.raises(GbnnError):
        type(layer).restore(layer.config(), {**own, "more": np.ones(3)}, children)
    for name, array in own.items():
        without = {k: v for k, v in own.items() if k != name}
        if name != "bias":  # a layer has one or not
            with pytest.raises(GbnnError):
                type(layer).restore(layer.config(), without, children)
        wrong = np.ones(7) if isinstance(array, Weights) else np.ones((*array.shape, 2))
        with pytest.raises(GbnnError):
            type(layer).restore(layer.config(), {**own, name: wrong}, children)


@ROWS
def test_description(row):
    layer = row.make()
    text = layer.describe()
    leaves = [inner for _, inner in layer.walk() if not inner.children()]
    assert len(text.splitlines()) == len(leaves) + 2
    for inner in leaves:
        assert inner.kind in text
        if inner.in_features is not None:
            assert f"{inner.in_features} x {inner.out_features}" in text
        if isinstance(inner, layers.Linear):
            assert f"nnz={inner.weights.nnz}" in repr(layer)
            assert f"{inner.in_features} x {inner.out_features}" in repr(layer)
    total = text.splitlines()[-1]
    assert f"{layer.nnz:,}" in total
    assert f"{layer.nbytes:,}" in total
    assert layer.nnz == sum(inner.own_nnz for inner in leaves)
    for _, inner in layer.walk():
        assert type(inner).__name__ in repr(layer)


@ROWS
def test_widths_are_as_said(row):
    layer = row.arrays()
    assert layer.in_features in (None, row.width)
    wide = layer.forward(batch(row))[0].shape[1]
    assert layer.out_features in (None, wide)
    assert layer.width_after(row.width) == wide


# -- Bad input -----------------------------------------------------------------------------------------------


def broken_csr(columns):
    made = sp.csr_array((np.ones(3), np.array([0, 1, 2]), np.array([0, 2, 3])), shape=(2, 6))
    made.indices[:] = columns
    return made


class Refusal:
    """As a torch tensor that requires a gradient."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not an array")


BAD = {
    "1-D": np.ones(6),
    "3-D": np.ones((2, 6, 1)),
    "0-D": np.array(1.0),
    "no rows": np.ones((0, 6)),
    "strings": np.full((2, 6), "a"),
    "object": np.full((2, 6), None),
    "complex": np.ones((2, 6), dtype=complex),
    "dates": np.zeros((2, 6), dtype="M8[s]"),
    "records": np.zeros((2, 6), dtype=[("a", float)]),
    "None": None,
    "number": 3.0,
    "text": "six",
    "dict": {"x": 1},
    "sparse, complex": sp.csr_array(np.eye(6, dtype=complex)),
    "sparse, no rows": sp.csr_array((0, 6)),
    "sparse, 1-D": sp.coo_array(np.ones(6)),
    "sparse, index too large": broken_csr([0, 6, 2]),
    "sparse, negative index": broken_csr([0, -1, 2]),
    "graphblas vector": gb.Vector.from_dense([1.0] * 6),
    "graphblas udt": gb.Matrix(gb.dtypes.register_anonymous(np.dtype("(2,)f8")), 2, 6),
    "ragged": [[1.0] * 6, [1.0] * 5],
    "huge integers": [[10**400] * 6],
    "a layer": layers.Relu(),
    "a refusal": Refusal(),
    "weights": Weights.from_dense(np.eye(6)),
}


@ROWS
def test_bad_input(row):
    layer = row.make()
    for name, x in BAD.items():
        for training in (False, True):
            with pytest.raises(GbnnError, match="expected"):
                pytest.fail(f"{name}: {layer.forward(x, training=training)[0]}")


@ROWS
def test_wrong_width(row):
    layer = row.make()
    if layer.in_features is None:
        assert layer.forward(np.ones((2, row.width + 1)))[0].shape[1] == layer.width_after(row.width + 1)
        return
    for width in (0, 1, row.width - 1, row.width + 1):
        for x in (np.ones((2, width)), sp.csr_array(np.ones((2, max(width, 1))))):
            if x.shape[1] != row.width:
                with pytest.raises(GbnnError, match=rf"\b{row.width}\b"):
                    layer.forward(x)


@ROWS
@settings(deadline=None, max_examples=30)
@given(
    x=arrays(scalar_dtypes(), array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=7), fill=st.nothing())
)
def test_any_array_is_computed_or_refused(row, x):
    layer = row.make()
    try:
        y, _ = layer.forward(x)
    except GbnnError:
        good = x.ndim == 2 and len(x) > 0 and x.dtype.kind in "fiub"
        assert not (good and layer.in_features in (None, x.shape[1]))
    else:
        assert y.shape == (x.shape[0], layer.width_after(x.shape[1]))


@ROWS
def test_bad_gradient(row):
    layer, x = row.arrays(), batch(row, size=7)  # no layer is as wide
    y, pullback = layer.forward(x)
    rows, columns = y.shape
    bad = [y[0], y[:1], y[:, :-1], y[:-1], np.ones((rows, columns + 1)), y[None], y.T, y * 1j, None, "dy"]
    bad += [
        np.full(y.shape, "a"),
        np.full(y.shape, None),
        sp.csr_array(y[:1]),
        sp.csr_array(y * 1j),
        [[1.0], [1.0, 2.0]],
        Refusal(),
    ]
    for dy in bad:
        with pytest.raises(GbnnError, match="dy: expected"):
            pytest.fail(str(pullback(dy)[0]))
