"""Outputs: filled in place, handed over without a copy, once."""

from __future__ import annotations

import gc

import graphblas as gb
import numpy as np
import pytest
from graphblas import monoid, semiring
from support.loans import DTYPES, full, noise, parts
from support.memory import peak_while

from gbnn import storage
from gbnn.errors import GbnnError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (0, 3), (3, 0)])
def test_an_output_begins_with_its_fill_and_becomes_an_array(dtype, shape):
    fill = np.arange(shape[1]) % 2
    y = storage.Output(*shape, dtype, fill).take()
    np.testing.assert_array_equal(y, np.broadcast_to(fill, shape).astype(dtype))
    assert y.dtype == dtype
    assert y.flags.f_contiguous
    assert y.flags.owndata
    assert y.flags.writeable


def test_an_output_is_filled_in_place_and_handed_over_without_a_copy():
    x, w = np.ones((500, 300), dtype=np.float32, order="F"), parts()

    def compute():
        out = storage.Output(500, 1000, np.float32)
        out.matrix(monoid.plus) << semiring.plus_times(dense @ weights)
        return out.take()

    dense, weights = storage.lend_full(x), storage.lend_columns(*w, (300, 1000))
    compute()
    peak, y = peak_while(compute)
    assert y.sum() == 2 * 500
    assert peak < y.nbytes + 100_000


def test_an_output_of_one_value_becomes_a_whole_array():
    out = storage.Output(2, 3, np.float32)
    out.matrix[:, :] = 5.0
    assert out.matrix.ss.is_iso
    np.testing.assert_array_equal(out.take(), np.full((2, 3), 5.0, dtype=np.float32))


def test_an_output_never_taken_leaves_its_memory_to_its_matrix():
    matrix = storage.Output(2, 3, np.float32, 7.0).matrix
    gc.collect()
    kept = noise()
    assert matrix.reduce_scalar().value == 42.0
    assert len(kept) == 5


def test_an_output_whose_memory_was_replaced_gives_the_new():
    x, w = full(300, 2), full(2, 300)
    for _ in range(5):
        out = storage.Output(300, 300, np.float32, 1.0)
        out.matrix << semiring.plus_times(storage.lend_full(x) @ storage.lend_full(w))
        kept = noise()
        y = out.take()
        del out
        gc.collect()
        np.testing.assert_array_equal(y, x @ w)
        assert len(kept) == 5


def test_an_output_is_taken_once():
    out = storage.Output(2, 3, np.float32)
    out.take()
    with pytest.raises(
        GbnnError, match=r"^output: expected a full matrix, taken once, got one taken already"
    ):
        out.take()


def test_an_output_that_was_made_sparse_is_not_taken():
    out = storage.Output(2, 3, np.float32)
    out.matrix << gb.Matrix.from_coo([0], [0], [1.0], nrows=2, ncols=3)
    with pytest.raises(GbnnError, match="got one with 1 of 6 entries"):
        out.take()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": -1},
        {"columns": 2.0},
        {"rows": True},
        {"dtype": np.int32},
        {"dtype": "no such"},
        {"fill": np.zeros(4)},
        {"fill": "a"},
        {"fill": None},
    ],
)
def test_outputs_that_cannot_be(change):
    with pytest.raises(GbnnError, match=f"^{next(iter(change))}: "):
        storage.Output(**({"rows": 2, "columns": 3, "dtype": np.float32} | change))
