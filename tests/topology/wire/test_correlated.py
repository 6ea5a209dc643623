"""First layers from correlations, against numpy.corrcoef and a full sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.errors import ArgumentError, KindError, NonFiniteError
from gbnn.topology.wire.correlated import correlated

Array = np.ndarray[Any, Any]


def scores(x: Array, hidden: int) -> Array:
    """|corr(i, j mod in)|, as the reference tiles and cuts the matrix; 0 for constant inputs and itself."""
    corr = np.zeros((x.shape[1], x.shape[1]))
    varies = np.flatnonzero(x.min(axis=0) < x.max(axis=0))
    if varies.size:
        corr[np.ix_(varies, varies)] = np.abs(np.corrcoef(x[:, varies].T.astype(float)))
    np.fill_diagonal(corr, 0)
    return np.tile(corr, -(-hidden // x.shape[1]))[:, :hidden]


@settings(deadline=None)
@given(st.data())
def test_edges_are_the_largest_correlations(data: st.DataObject) -> None:
    rows, inputs, hidden = (data.draw(st.integers(1, n)) for n in (12, 6, 16))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = rng.integers(-3, 4, size=(rows, inputs)).astype(float)
    x[:, rng.random(inputs) < 0.2] = 7.1  # constant inputs
    if rows > 1:
        x = np.where(x.min(axis=0) == x.max(axis=0), x, x + rng.normal(size=x.shape))
    nnz = data.draw(st.integers(0, inputs * hidden))
    make = correlated(x)
    edges = make(np.random.default_rng(1), (inputs, hidden), nnz)
    assert edges.nnz == nnz
    assert edges.shape == (inputs, hidden)
    wanted = scores(x, hidden)
    got = np.sort(wanted[edges.sources, edges.targets])[::-1]
    np.testing.assert_allclose(got, np.sort(wanted.ravel())[::-1][:nnz], atol=1e-6)
    for other in (correlated(x, block=data.draw(st.integers(1, 80))), correlated(sp.csr_array(x))):
        again = other(np.random.default_rng(1), (inputs, hidden), nnz)
        assert again.sources.tolist() == edges.sources.tolist()
        assert again.targets.tolist() == edges.targets.tolist()


def test_many_rows_in_any_block() -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(500, 5)) @ rng.normal(size=(5, 60)) + rng.normal(size=(500, 60))).astype(np.float32)
    wanted = scores(x, 120)
    edges = correlated(x)(rng, (60, 120), 700)
    got = np.sort(wanted[edges.sources, edges.targets])
    np.testing.assert_allclose(got, np.sort(wanted.ravel())[-700:], atol=1e-6)
    again = correlated(x, block=6000)(rng, (60, 120), 700)
    assert again.sources.tolist() == edges.sources.tolist()
    assert again.targets.tolist() == edges.targets.tolist()


def test_ties_go_to_the_pair_of_smaller_numbers() -> None:
    x = np.outer(np.arange(4.0), [1.0, -2.0, 3.0])  # every pair has |r| = 1
    for block in (1, 2**22):
        edges = correlated(x, block=block)(np.random.default_rng(0), (3, 3), 3)
        assert list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)) == [
            (0, 1),
            (0, 2),
            (1, 0),
        ]


def test_scale_and_shift_change_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 20)) @ rng.normal(size=(20, 20))
    plain = correlated(x)(rng, (20, 20), 60)
    for other in (x * 1e150, x * 1e-150, x + 1e3, np.round(x * 1000).astype(int)):
        edges = correlated(other)(rng, (20, 20), 60)
        same = set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
        assert len(same & set(zip(plain.sources.tolist(), plain.targets.tolist(), strict=True))) >= 58


def test_what_has_no_correlation_is_random() -> None:
    x = np.ones((5, 4))
    one, two = (correlated(x)(np.random.default_rng(k), (4, 50), 20) for k in (0, 1))
    assert one.nnz == two.nnz == 20
    assert one.targets.tolist() != two.targets.tolist()


def test_bad_arguments_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(NonFiniteError):
        correlated([[1.0, np.nan]])
    with pytest.raises(KindError):
        correlated([["a"]])
    for x in (np.ones(3), np.ones((0, 3)), np.ones((3, 0))):
        with pytest.raises(ArgumentError):
            correlated(x)
    with pytest.raises(ArgumentError, match="block"):
        correlated(np.ones((2, 2)), block=0)
    with pytest.raises(ArgumentError, match="2 inputs"):
        correlated(np.ones((2, 2)))(rng, (3, 3), 1)
    with pytest.raises(ArgumentError, match="nnz"):
        correlated(np.ones((2, 2)))(rng, (2, 2), 5)
