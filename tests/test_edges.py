"""`Edges` against a set of pairs and SciPy, `Change` by its laws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import MAX_FEATURES, Change, Edges, check_indices, check_shape, shape_of
from gbnn.errors import ArgumentError, GbnnError, KindError

few = settings(deadline=None, max_examples=60)

BIG = MAX_FEATURES
# On both sides of where one int64 key still holds both ends of an edge.
SHAPES = [(1, 1), (1, BIG), (BIG, 1), (BIG, BIG), (2**31, 2**32 - 1), (2**32, 2**32), (3, BIG), (BIG, 2)]
shapes = st.tuples(st.integers(1, 7), st.integers(1, 7)) | st.sampled_from(SHAPES)


def ends(size):
    return (
        st.integers(0, size - 1) | st.integers(0, min(3, size - 1)) | st.integers(max(0, size - 3), size - 1)
    )


@st.composite
def layers(draw):
    """A shape and edges that fit it, in any order, each once."""
    shape = draw(shapes)
    return shape, draw(st.lists(st.tuples(*map(ends, shape)), unique=True, max_size=20))


def columns_of(pairs):
    return [p[0] for p in pairs], [p[1] for p in pairs]


def build(shape, pairs):
    return Edges.from_coo(*columns_of(pairs), shape)[0]


def pairs_of(compressed):
    return list(
        zip(
            np.repeat(compressed.ids, np.diff(compressed.starts)).tolist(),
            compressed.others.tolist(),
            strict=True,
        )
    )


# -- Edges ---------------------------------------------------------------------------------------------------


@few
@given(layers())
def test_edges_are_those_given_sorted(layer):
    shape, pairs = layer
    edges, order = Edges.from_coo(*columns_of(pairs), shape)
    assert list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)) == sorted(pairs)
    assert [pairs[k] for k in order] == sorted(pairs)
    assert (edges.nnz, edges.shape) == (len(pairs), shape)


@few
@given(layers())
def test_both_groupings_hold_every_edge_and_only_neurons_that_have_edges(layer):
    shape, pairs = layer
    edges = build(shape, pairs)
    assert pairs_of(edges.by_source) == sorted(pairs)
    assert pairs_of(edges.by_target) == sorted((t, s) for s, t in pairs)
    for grouping, side in ((edges.by_source, 0), (edges.by_target, 1)):
        assert grouping.ids.tolist() == sorted({pair[side] for pair in pairs})
        assert grouping.starts.size == grouping.ids.size + 1
    assert [sorted(pairs)[k] for k in edges.order] == [(s, t) for t, s in pairs_of(edges.by_target)]


@few
@given(layers().filter(lambda layer: max(layer[0]) < 10))
def test_groupings_are_scipys_where_scipy_can(layer):
    (rows, columns), pairs = layer
    edges = build((rows, columns), pairs)
    ones = np.arange(1, len(pairs) + 1)
    by_column = sp.csr_array((ones, (edges.sources, edges.targets)), shape=(rows, columns)).tocsc()
    by_column.sort_indices()
    np.testing.assert_array_equal(edges.by_target.others, by_column.indices)
    np.testing.assert_array_equal(edges.order, by_column.data - 1)
    counts = np.zeros(columns, dtype=int)
    counts[edges.by_target.ids] = np.diff(edges.by_target.starts)
    np.testing.assert_array_equal(counts, np.diff(by_column.indptr))


@few
@given(layers())
def test_index_arrays_are_what_graphblas_reads_in_place(layer):
    edges = build(*layer)
    for array in (*edges.by_source, *edges.by_target):
        assert array.dtype == np.int64
        assert array.flags.c_contiguous
        assert not array.flags.writeable  # an index out of range there would crash


@few
@given(layers(), st.data())
def test_find_gives_the_position_of_an_edge_or_minus_one(layer, data):
    shape, pairs = layer
    edges = build(shape, pairs)
    place = {pair: k for k, pair in enumerate(sorted(pairs))}
    asked = st.tuples(*map(ends, shape)) | (st.sampled_from(pairs) if pairs else st.nothing())
    asked = data.draw(st.lists(asked, max_size=20))
    sources, targets = (np.array(side, dtype=np.int64) for side in columns_of(asked))
    np.testing.assert_array_equal(edges.find(sources, targets), [place.get(pair, -1) for pair in asked])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 1000])
def test_find_searches_rows_of_any_length(length):
    edges, _ = Edges.from_coo([0] * length + [2], [*range(0, 2 * length, 2), 5], (3, 2 * length + 6))
    targets = np.arange(-1, 2 * length + 6)
    expected = [t // 2 if t in range(0, 2 * length, 2) else -1 for t in targets]
    np.testing.assert_array_equal(edges.find(np.zeros_like(targets), targets), expected)
    expected = [length if t == 5 else -1 for t in targets]
    np.testing.assert_array_equal(edges.find(np.full_like(targets, 2), targets), expected)
    assert (edges.find(np.ones_like(targets), targets) == -1).all()


def test_given_arrays_are_neither_kept_nor_changed():
    sources, targets = np.array([2, 0, 1]), np.array([0, 1, 0])
    edges, _ = Edges.from_coo(sources, targets, (3, 2))
    assert sources.tolist() == [2, 0, 1]
    sources[:] = 0
    targets[:] = 1
    assert edges.sources.tolist() == [0, 1, 2]
    assert edges.targets.tolist() == [1, 0, 0]
    assert targets.flags.writeable


@pytest.mark.parametrize("kind", [list, tuple, np.uint64, np.int8, np.uint8, np.int32])
def test_any_integers_serve_as_indices(kind):
    sources, targets = (
        kind(side) if kind in (list, tuple) else np.array(side, dtype=kind) for side in ([1, 0], [0, 1])
    )
    assert (
        build((2, 2), [(1, 0), (0, 1)]).targets.tolist()
        == Edges.from_coo(sources, targets, (2, 2))[0].targets.tolist()
    )


def test_nbytes_counts_what_is_held():
    edges, _ = Edges.from_coo(np.arange(100), np.zeros(100, dtype=int), (BIG, BIG))
    own = 8 * (100 + 101 + 100)
    assert edges.nbytes == own
    assert edges.by_target.ids.size == 1
    assert edges.nbytes == own


@few
@given(layers().filter(lambda layer: layer[1]), st.data())
def test_an_edge_given_twice_is_refused_and_named(layer, data):
    shape, pairs = layer
    twice = data.draw(st.sampled_from(pairs))
    with pytest.raises(ArgumentError) as caught:
        Edges.from_coo(*columns_of([*pairs, twice]), shape)
    assert f"({twice[0]}, {twice[1]}) twice" in str(caught.value)


@few
@given(layers(), st.booleans(), st.booleans(), st.data())
def test_an_index_out_of_range_is_refused_and_named(layer, target, below, data):
    shape, pairs = layer
    wrong = -data.draw(st.integers(1, 2**63)) if below else shape[target] + data.draw(st.integers(0, 2**61))
    sides = columns_of([*pairs, (0, 0)])
    sides[target][-1] = wrong
    with pytest.raises(ArgumentError) as caught:
        Edges.from_coo(*sides, shape)
    assert str(caught.value).startswith("targets" if target else "sources")
    assert str(wrong) in str(caught.value)


@pytest.mark.parametrize(
    ("sources", "targets", "error"),
    [
        ([0, 1], [0], ArgumentError),
        ([], [0], ArgumentError),
        ([[0]], [[0]], ArgumentError),
        (0, 0, ArgumentError),
        ([0.0], [0], KindError),
        ([0], [np.nan], KindError),
        ([True], [0], KindError),
        (["0"], [0], KindError),
        ([None], [0], KindError),
        ([[0], [0, 1]], [0, 0], KindError),
        ([2**70], [0], GbnnError),
        (np.array([2**64 - 1], dtype=np.uint64), [0], ArgumentError),
    ],
)
def test_what_are_no_edges_is_refused(sources, targets, error):
    with pytest.raises(error, match=r"^(sources|targets): "):
        Edges.from_coo(sources, targets, (2, 2))


@pytest.mark.parametrize("size", [0, -1, MAX_FEATURES + 1, True, 2.0, "2", None, np.nan])
def test_sizes_that_make_no_sense_are_refused(size):
    for shape, name in (((size, 2), "in_features"), ((2, size), "out_features")):
        for function in (shape_of, lambda s: check_shape(*s), lambda s: Edges.from_coo([], [], s)):
            with pytest.raises(GbnnError, match=f"^{name}: "):
                function(shape)


@pytest.mark.parametrize("shape", [None, 3, (), (3,), (3, 3, 3)])
def test_what_is_no_pair_is_no_shape(shape):
    with pytest.raises(ArgumentError, match=r"^shape: expected two integers"):
        Edges.from_coo([], [], shape)


def test_nothing_can_be_indexed_in_nothing():
    assert check_indices("drop", [], 0).size == 0
    with pytest.raises(ArgumentError, match="expected none"):
        check_indices("drop", [0], 0)


# -- Change --------------------------------------------------------------------------------------------------


@st.composite
def changes(draw, before=None):
    """A rewiring of some edges: some kept, in any order, among new ones."""
    count = draw(st.integers(0, 10)) if before is None else before
    kept = draw(st.lists(st.sampled_from(range(count)), unique=True)) if count else []
    origin = draw(st.permutations(kept + [-1] * draw(st.integers(0, 5))))
    return Change(np.array(origin, dtype=np.int64), count)


@few
@given(changes())
def test_a_change_counts_what_it_says(change):
    assert change.grown == change.new.size == (change.origin == -1).sum()
    assert change.dropped == len(set(range(change.before)) - set(change.origin.tolist()))
    assert change.before - change.dropped + change.grown == change.origin.size


@few
@given(changes(), st.sampled_from([np.float32, np.int8, np.bool_]), st.sampled_from([(), (2,), (2, 3)]))
def test_carry_moves_each_entry_with_its_edge(change, dtype, more):
    rng = np.random.default_rng(0)
    array = rng.integers(0, 2, size=(change.before, *more)).astype(dtype)
    moved = change.carry(array, fill=1)
    assert moved.dtype == dtype
    for k, old in enumerate(change.origin):
        np.testing.assert_array_equal(moved[k], array[old] if old >= 0 else np.ones(more, dtype=dtype))


@few
@given(changes(), st.data())
def test_carrying_twice_is_carrying_by_the_composition(first, data):
    second = data.draw(changes(before=first.origin.size))
    array = np.arange(100.0, 100.0 + first.before)
    by_steps = second.carry(first.carry(array))
    composed = Change(second.carry(first.origin, fill=-1), first.before)
    np.testing.assert_array_equal(by_steps, composed.carry(array))


@few
@given(changes())
def test_new_edges_get_their_fill_in_the_new_order(change):
    fill = np.arange(1.0, change.grown + 1)
    np.testing.assert_array_equal(change.carry(np.zeros(change.before), fill)[change.new], fill)


@few
@given(changes())
def test_what_is_not_per_edge_is_not_carried(change):
    for array in (np.zeros(change.before + 1), np.zeros((1, change.before)), np.float64(1)):
        if array.ndim != 2 or change.before != 1:
            with pytest.raises(ArgumentError, match=r"^array: "):
                change.carry(array)
    with pytest.raises(ArgumentError, match=r"^fill: "):
        change.carry(np.zeros(change.before), np.zeros(change.grown + 2))
