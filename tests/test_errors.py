"""What errors say, what they can be caught as, and the checks that raise them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from gbnn import errors
from gbnn.errors import (
    ArgumentError,
    FileError,
    GbnnError,
    KindError,
    MissingError,
    NonFiniteError,
    check_bool,
    check_finite,
    check_float,
    check_function,
    check_int,
    check_list,
    check_real,
    generator,
)

few = settings(deadline=None, max_examples=60)

KINDS = {
    ArgumentError: ValueError,
    KindError: TypeError,
    FileError: ValueError,
    NonFiniteError: ArithmeticError,
    MissingError: ImportError,
}


def test_the_table_below_is_complete():
    assert {getattr(errors, name) for name in errors.__all__} == {GbnnError, *KINDS}


@pytest.mark.parametrize(("kind", "builtin"), KINDS.items())
def test_each_error_is_a_builtin_one_too_and_survives_pickling(kind, builtin):
    error = pickle.loads(pickle.dumps(kind("here", "this", [1, 2])))
    assert type(error) is kind
    assert isinstance(error, (GbnnError, builtin))
    assert issubclass(kind, builtin)
    assert str(error) == "here: expected this, got [1, 2]"
    assert (error.where, error.expected, error.got) == ("here", "this", [1, 2])


@few
@given(st.integers(), st.integers(), st.integers())
def test_integers_are_returned_within_bounds_and_refused_beyond(value, low, high):
    if low <= value <= high:
        assert check_int("n", value, low, high) == value
    else:
        with pytest.raises(ArgumentError, match=r"^n: expected an integer between"):
            check_int("n", value, low, high)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, [1], np.array([1])])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(KindError, match=r"^n: expected an integer"):
        check_int("n", value, 0)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.int32])
def test_numpy_integers_become_python_ones(kind):
    assert type(check_int("n", kind(3), 0)) is int


@few
@given(st.floats() | st.integers(-(10**400), 10**400), st.floats(-10, 10), st.floats(-10, 10), st.booleans())
def test_floats_are_returned_within_bounds_and_refused_beyond(value, low, high, open_low):
    fits = low < value <= high or (value == low <= high and not open_low)
    if fits:
        assert check_float("f", value, low, high, open_low=open_low) == value
    else:
        with pytest.raises(ArgumentError, match=r"^f: expected a finite number in [\[(]"):
            check_float("f", value, low, high, open_low=open_low)


@pytest.mark.parametrize(
    "value", [np.inf, -np.inf, np.nan, 10**400, -(10**400)], ids=["inf", "-inf", "nan", "huge", "-huge"]
)
def test_without_bounds_floats_are_finite_still(value):
    with pytest.raises(ArgumentError):
        check_float("f", value)


@pytest.mark.parametrize("value", [True, np.False_, "1", None, 1j, [1.0]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(KindError, match=r"^f: expected a number"):
        check_float("f", value)


@few
@given(
    st.sampled_from([np.float32, np.float64]).flatmap(lambda d: arrays(d, array_shapes(min_side=0))),
    st.booleans(),
)
def test_the_first_entry_that_is_not_finite_is_named(array, fortran):
    array = np.asarray(array, order="F" if fortran else "C")
    bad = [place for place in np.ndindex(array.shape) if not np.isfinite(array[place])]
    if not bad:
        check_finite("x", array)
        return
    with pytest.raises(NonFiniteError) as caught:
        check_finite("x", array)
    index = ", ".join(map(str, bad[0]))
    assert str(caught.value).endswith(f"at [{index}] ({len(bad)} such of {array.size})")


def test_large_finite_numbers_whose_sum_is_infinite_pass():
    check_finite("x", np.full(3, np.finfo(np.float64).max))


def test_infinities_that_cancel_are_found():
    with pytest.raises(NonFiniteError, match=r"inf at \[1\] \(2 such of 3\)"):
        check_finite("x", np.array([0.0, np.inf, -np.inf]))


@pytest.mark.parametrize("values", [1, [1.5, 2], np.ones((2, 3)), [True], np.float32(1), []])
def test_real_numbers_become_an_array(values):
    np.testing.assert_array_equal(check_real("v", values), values)


@pytest.mark.parametrize("values", ["a", [1j], None, [[1], [1, 2]], {}, np.array(["x"]), [object()]])
def test_what_are_no_real_numbers_is_refused(values):
    with pytest.raises(KindError, match=r"^v: expected real numbers"):
        check_real("v", values)


def test_a_generator_is_kept_and_a_seed_makes_one():
    rng = np.random.default_rng(1)
    assert generator("seed", rng) is rng
    assert generator("seed", 5).integers(2**60) == np.random.default_rng(5).integers(2**60)


@pytest.mark.parametrize("seed", [None, 1.0, "1", -1, np.random.RandomState(0)])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(GbnnError, match=r"^seed: "):
        generator("seed", seed)


def test_what_can_be_called_is_a_function():
    for part in (len, int, lambda: 0):
        check_function("f", part)
    for part in (None, 0.3, "len", [len]):
        with pytest.raises(KindError, match=r"^f: expected a function, got .* of type "):
            check_function("f", part)


def test_only_a_bool_is_one():
    assert [check_bool("b", value) for value in (True, False, np.True_, np.False_)] == [True, False] * 2
    assert type(check_bool("b", np.True_)) is bool
    for value in (0, 1.0, "True", None, np.array([True, False]), np.array(True)):
        with pytest.raises(KindError, match=r"^b: expected True or False, got "):
            check_bool("b", value)


def test_what_can_be_gone_through_is_a_list():
    for values in ([1, 2], (1, 2), np.array([1, 2]), range(1, 3), iter([1, 2])):
        assert check_list("l", values, "numbers") == [1, 2]
    for values in (None, 5, np.array(5), len):
        with pytest.raises(KindError, match=r"^l: expected numbers, got .* of type "):
            check_list("l", values, "numbers")
