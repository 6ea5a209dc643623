"""Every target at all, and every bad output: right, or refused with what came and where."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.losses import CLASSES, DEFAULTS, TABLE, all_losses, case, indicators, labels, numbers, sparse

from gbnn import losses
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError


@all_losses
def test_a_good_target_passes_whatever_is_known(loss, make):
    _, target = case(make)
    for known in ({}, {"rows": 7}, {"outputs": CLASSES}, {"rows": 7, "outputs": CLASSES}):
        assert loss.check_target(target, **known) is target  # no copy
    with pytest.raises(ArgumentError, match=r"target: expected .*8"):
        loss.check_target(target, rows=8)


@pytest.mark.parametrize("name", ["mse", "huber", "binary_cross_entropy"])
def test_one_output_takes_a_flat_target_and_does_not_broadcast_it(name):
    loss = losses.named(name)
    y = np.array([[0.0], [1.0], [2.0]])
    flat = np.array([0, 1, 1])
    value, pullback = loss(y, flat)
    column, column_pullback = loss(y, flat[:, None])
    assert value == column
    assert pullback().shape == (3, 1)
    np.testing.assert_array_equal(pullback(), column_pullback())
    assert loss.metrics(y, flat) == loss.metrics(y, flat[:, None])


@pytest.mark.parametrize(
    ("loss", "target", "message"),
    [
        (losses.cross_entropy, [0, 1, 2, 9], "class labels from 0 to 2, got 9 at [3]"),
        (losses.hinge, [0, 1, -1, 9], "class labels from 0 to 2, got -1 at [2]"),
        (losses.hinge, np.array([0, 1, 2**64 - 1, 0], dtype=np.uint64), "got 18446744073709551615 at [2]"),
        (losses.cross_entropy, [0, 1], "class labels of shape (4,), got shape (2,)"),
        (losses.cross_entropy, np.eye(4, 3, dtype=int), "class labels of shape (4,), got shape (4, 3)"),
        (losses.cross_entropy, [0.0, 1.0, 2.0, 1.0], "integer class labels, got list of dtype float64"),
        (losses.cross_entropy, ["a", "b", "c", "d"], "integer class labels, got list of dtype <U1"),
        (losses.binary_cross_entropy, np.full((4, 3), 2), "numbers in [0, 1], got 2 at [0, 0]"),
        (losses.binary_cross_entropy, np.diag([0, 0, -1.0])[[0, 1, 2, 2]], "got -1.0 at [2, 2]"),
        (losses.binary_cross_entropy, sp.csr_array(np.eye(4, 3) * 3), "got 3.0 at [0, 0]"),
        (losses.binary_cross_entropy, sp.csr_array(np.eye(3)), "shape (4, 3), got shape (3, 3)"),
        (losses.binary_cross_entropy, sp.csc_array(np.eye(4, 3)), "SciPy CSR (see .tocsr())"),
        (losses.mse, np.zeros(4), "shape (4, 3), got shape (4,)"),
        (losses.huber, np.zeros((3, 4)), "shape (4, 3), got shape (3, 4)"),
        (losses.mse, [[0, 1, 2]] * 3 + [[0, np.inf, 2]], "finite numbers, got inf at [3, 1]"),
        (losses.mse, sp.csr_array(np.eye(4, 3)), "a dense array of numbers, got a sparse csr_array"),
        (losses.mse, [[1, 2, 3], [1, 2]], "a dense array of numbers, got list"),
    ],
)
def test_errors_say_what_came_and_where(loss, target, message):
    for refuse in (
        lambda: loss(np.zeros((4, 3)), target),
        lambda: loss.metrics(np.zeros((4, 3)), target),
        lambda: loss.check_target(target, rows=4, outputs=3),
    ):
        with pytest.raises(GbnnError) as caught:
            refuse()
        assert caught.value.where == "target"
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "target", "kind"),
    [
        (losses.cross_entropy, [-1], ArgumentError),
        (losses.cross_entropy, np.array([2**63], dtype=np.uint64), ArgumentError),
        (losses.cross_entropy, np.zeros((0,), dtype=int), ArgumentError),
        (losses.cross_entropy, 3, ArgumentError),
        (losses.cross_entropy, [True], KindError),
        (losses.mse, [np.nan], NonFiniteError),
        (losses.mse, np.zeros((0, 2)), ArgumentError),
        (losses.mse, np.zeros((2, 0)), ArgumentError),
        (losses.mse, 1.0, ArgumentError),
        (losses.mse, [1j], KindError),
        (losses.binary_cross_entropy, np.zeros(0), ArgumentError),
        (losses.binary_cross_entropy, sp.csr_array([1.0, 0.0]), ArgumentError),
        (losses.binary_cross_entropy, sp.csr_array([[1j, 0.0]]), KindError),
    ],
)
def test_check_target_refuses_with_nothing_known(loss, target, kind):
    with pytest.raises(kind):
        loss.check_target(target)


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize(
    "y", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((3, 1), complex), "y"]
)
def test_bad_outputs_are_refused(loss, y):
    for refuse in (lambda: loss(y, [0, 0, 0]), lambda: loss.predict(y), lambda: loss.metrics(y, [0, 0, 0])):
        with pytest.raises(GbnnError) as caught:
            refuse()
        assert caught.value.where == "y"


SHAPE = (3, 2)
real = hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64))
dtypes = real | hnp.boolean_dtypes() | hnp.complex_number_dtypes() | hnp.unicode_string_dtypes()
shapes = st.sampled_from([(3,), (3, 2), (3, 1), (2, 3), (2,), (4,), (0,), (0, 2), (3, 0), (), (1, 3, 2)])
anything = st.one_of(
    hnp.arrays(dtypes, shapes),
    hnp.arrays(real, st.just((3,)) | st.just(SHAPE)),
    hnp.arrays(np.int64, (3,), elements=st.integers(-2, 3)),
    hnp.arrays(np.float64, SHAPE, elements=st.sampled_from([0.0, 0.5, 1.0, -0.1, 1.1, np.nan, np.inf])),
    st.lists(st.none() | st.integers() | st.floats() | st.booleans() | st.text(max_size=2), max_size=4),
    st.lists(st.lists(st.integers(-1, 2) | st.floats(), max_size=3), max_size=4),
    st.none() | st.text() | st.integers() | st.dictionaries(st.integers(), st.integers()) | st.binary(),
    st.builds(
        lambda array, kind: kind(array),
        hnp.arrays(
            np.float32, st.just(SHAPE) | st.just((2, 2)), elements=st.sampled_from([0, 1, 0.5, -1, 2])
        ),
        st.sampled_from(
            [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.dia_array]
        ),
    ),
)


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
@given(target=anything)
def test_any_target_at_all_is_right_or_refused(loss, target):
    y = np.array([[0.5, -1.0], [2.0, 0.0], [-0.5, 0.25]])
    refused: GbnnError | None = None
    try:
        value, pullback = loss(y, target)
    except GbnnError as error:
        refused = error
    if refused is not None:
        assert refused.where == "target"
        with pytest.raises(type(refused)):
            loss.check_target(target, *SHAPE)
        with pytest.raises(type(refused)):
            loss.metrics(y, target)
        return
    # What passes has the right form, and so gives a number and a gradient.
    form = target if sp.issparse(target) else np.asarray(target)
    assert form.shape == ((3,) if loss.name in ("cross_entropy", "hinge") else SHAPE)
    assert value >= 0  # infinite where a difference of 1e300 is squared
    assert not np.isnan(value)
    assert pullback().shape == SHAPE


@pytest.mark.parametrize("loss", [losses.mse, losses.huber, losses.binary_cross_entropy])
@given(place=st.tuples(st.integers(0, 2), st.integers(0, 1)), bad=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_a_number_that_is_not_finite_is_found(loss, place, bad):
    target = np.zeros(SHAPE)
    target[place] = bad
    with pytest.raises(GbnnError) as caught:
        loss(np.zeros(SHAPE), target)
    assert f"{bad} at [{place[0]}, {place[1]}]" in str(caught.value)


@pytest.mark.parametrize("make", [labels, indicators, numbers, sparse])
@given(rows=st.integers(1, 9))
def test_a_target_of_another_length_is_refused(make, rows):
    assume(rows != 7)
    for loss, own in TABLE.values():
        if own is make:
            y, _ = case(make)
            _, target = case(make, (rows, CLASSES))
            with pytest.raises(ArgumentError, match=r"target: expected .*7.*, got shape"):
                loss(y, target)
