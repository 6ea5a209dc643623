"""Thread settings and the kernel report."""

from __future__ import annotations

import os

import graphblas as gb
import numba
import numpy as np
import pytest
from graphblas import monoid, semiring

from gbnn.engine import kernel_report, set_threads, threads
from gbnn.errors import ArgumentError, KindError

MOST = int(vars(numba.config)["NUMBA_NUM_THREADS"])


@pytest.fixture(autouse=True)
def _same_threads_after():
    before = threads()
    yield
    set_threads(min(before, MOST))
    gb.ss.config["nthreads"] = before


def product():
    a = gb.Matrix.from_coo([0, 1], [1, 0], [1.0, 2.0], nrows=2, ncols=2)
    return semiring.plus_times(a @ a).new()


@pytest.mark.parametrize("count", sorted({1, MOST}))
def test_threads_are_set_in_graphblas_and_in_numba(count):
    set_threads(count)
    assert threads() == gb.ss.config["nthreads"] == numba.get_num_threads() == count


@pytest.mark.parametrize("count", [0, -1, MOST + 1, 2**70])
def test_thread_counts_out_of_range_change_nothing(count):
    set_threads(1)
    with pytest.raises(ArgumentError, match=r"^threads: expected an integer between 1 and"):
        set_threads(count)
    assert threads() == numba.get_num_threads() == 1


@pytest.mark.parametrize("count", [True, 1.0, "1", None])
def test_thread_counts_are_integers(count):
    with pytest.raises(KindError, match=r"^threads: "):
        set_threads(count)


def test_numpy_integers_are_thread_counts():
    set_threads(np.int64(1))
    assert threads() == 1


def test_the_report_holds_the_products_of_its_block_only():
    product()
    with kernel_report() as report:
        assert report.text == ""
        product()
        product()
    product()
    assert report.text.count("GrB_mxm") == 2
    assert report.kernels == ["other", "other"]
    assert not report.in_place  # `.new()` has nothing to write into


def test_a_kernel_that_was_tried_and_gave_up_does_not_count():
    full = gb.Matrix.from_dense(np.arange(4.0).reshape(2, 2))
    sparse = gb.Matrix.from_coo([0], [1], [1.0], nrows=2, ncols=2)
    sparse.ss.config["sparsity_control"] = "sparse"
    out = [full.dup(), full.dup()]
    with kernel_report() as report:
        out[0](monoid.plus) << semiring.plus_times(sparse @ full)
        out[1](monoid.max) << semiring.max_plus(sparse @ full)  # no built-in kernel
    assert "punt" in report.text
    assert report.kernels == ["saxpy5", "other"]
    assert not report.in_place


def test_a_block_without_products_reports_none():
    with kernel_report() as report:
        pass
    assert report.kernels == []
    assert not report.in_place


def test_stdout_is_taken_during_the_block_and_given_back(capfd):
    with kernel_report() as report:
        os.write(1, b"inside")
    os.write(1, b"after")
    assert report.text == "inside"
    assert capfd.readouterr().out == "after"


def test_an_exception_passes_and_leaves_everything_as_it_was(capfd):
    with pytest.raises(KeyError, match="mine"), kernel_report() as report:  # noqa: PT012
        product()
        raise KeyError("mine")
    product()
    os.write(1, b"after")
    assert "GrB_mxm" in report.text
    assert not gb.ss.config["burble"]
    assert capfd.readouterr().out == "after"


def test_reports_nest(capfd):
    with kernel_report() as outer:
        with kernel_report() as inner:
            product()
        assert gb.ss.config["burble"]
        product()
        product()
    assert [r.text.count("GrB_mxm") for r in (inner, outer)] == [1, 2]
    assert not gb.ss.config["burble"]
    assert capfd.readouterr().out == ""


def test_no_file_descriptor_is_left_open():
    def lowest_free():
        free = [os.dup(1) for _ in range(9)]
        for fd in free:
            os.close(fd)
        return free

    before = lowest_free()
    for _ in range(3):
        with kernel_report():
            pass
    assert lowest_free() == before
