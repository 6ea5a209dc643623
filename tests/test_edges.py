"""`Edges` against a set of pairs and SciPy, `Change` by its laws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import (
    MAX_FEATURES,
    Change,
    Edges,
    canonical_order,
    check_indices,
    check_shape,
    shape_of,
)
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


@few
@given(layers())
def test_canonical_order_is_that_of_pairs(layer):
    shape, pairs = layer
    sources, targets = (np.array(side, dtype=np.int64) for side in columns_of(pairs))
    for a, b, size in ((sources, targets, shape), (targets, sources, shape[::-1])):
        np.testing.assert_array_equal(canonical_order(a, b, size), np.lexsort((b, a)))


@pytest.mark.parametrize("shape", [(200, 90), (2**40, 2**40), (90, 2**40), (2**40, 90)])
def test_many_edges_are_found_grouped_and_counted_as_by_numpy(shape):
    rng = np.random.default_rng(0)
    ends = [np.sort(rng.choice(n, min(n // 2 + 1, 700), replace=False)) for n in shape]
    keys = np.sort(rng.choice(ends[0].size * ends[1].size, 2500, replace=False))
    sources, targets = ends[0][keys // ends[1].size], ends[1][keys % ends[1].size]
    edges, order = Edges.from_coo(sources, targets, shape)
    np.testing.assert_array_equal(order, np.arange(2500))
    turned = np.lexsort((sources, targets))
    np.testing.assert_array_equal(edges.order, turned)
    np.testing.assert_array_equal(edges.by_target.others, sources[turned])
    ids, counts = np.unique(targets, return_counts=True)
    np.testing.assert_array_equal(edges.by_target.ids, ids)
    np.testing.assert_array_equal(np.diff(edges.by_target.starts), counts)
    fan_in, fan_out = edges.fans()
    np.testing.assert_array_equal(fan_in, counts[np.searchsorted(ids, targets)])
    np.testing.assert_array_equal(fan_out, (sources[:, None] == sources).sum(axis=1))
    some = rng.permutation(2500)[:900]
    for asked in (some, np.sort(some)):
        np.testing.assert_array_equal(edges.find(sources[asked], targets[asked]), asked)
    absent = np.setdiff1d(np.arange(ends[0].size * ends[1].size), keys)[:3000]
    assert (edges.find(ends[0][absent // ends[1].size], ends[1][absent % ends[1].size]) == -1).all()
    beside = np.setdiff1d(np.arange(200), ends[0])[:50]
    assert (edges.find(beside, np.full(beside.size, targets[0])) == -1).all()


def test_what_is_looked_up_comes_in_pairs():
    edges = build((3, 3), [(0, 0)])
    with pytest.raises(ArgumentError, match=r"^targets: "):
        edges.find(np.array([0, 1]), np.array([0]))


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2", "<i8", ">i8", ">u4"])
def test_indices_of_every_kind_are_checked_and_copied(kind):
    array = np.array([0, 100, 7], dtype=kind)
    checked = check_indices("here", array, 101)
    assert (checked.dtype, checked.tolist()) == (np.dtype(np.int64), [0, 100, 7])
    checked[0] = 5
    assert array[0] == 0
    assert check_indices("here", array[::-1], 1000).tolist() == [7, 100, 0]
    with pytest.raises(ArgumentError, match="got 100"):
        check_indices("here", array, 100)
    if "u" not in kind:
        with pytest.raises(ArgumentError, match="got -1"):
            check_indices("here", np.array([3, -1], dtype=kind), BIG)


def test_unsigned_indices_above_the_signed_ones_are_in_range():
    assert check_indices("here", np.array([200, 3], dtype=np.uint8), 201).tolist() == [200, 3]


# -- Rewiring ------------------------------------------------------------------------------------------------


@st.composite
def rewirings(draw):
    """A layer, positions to drop, edges to add in any order: some of those dropped, and others."""
    shape, pairs = draw(layers())
    how = draw(st.sampled_from(["some", "some", "some", "none", "all"]))
    place = st.sampled_from(range(len(pairs))) if pairs else st.nothing()
    drop = draw(st.lists(place, unique=True)) if how == "some" else [*range(len(pairs))] * (how == "all")
    stays = set(pairs) - {sorted(pairs)[k] for k in drop}
    back = [sorted(pairs)[k] for k in drop]
    come = st.tuples(*map(ends, shape)) | (st.sampled_from(back) if back else st.nothing())
    grown = draw(st.lists(come.filter(lambda pair: pair not in stays), unique=True, max_size=20))
    return shape, pairs, drop, grown


def same(edges, expected):
    assert edges.shape == expected.shape
    for a, b in zip(
        (*edges.by_source, *edges.by_target), (*expected.by_source, *expected.by_target), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.int64
        assert a.flags.c_contiguous
        assert not a.flags.writeable
    np.testing.assert_array_equal(edges.order, expected.order)


@settings(deadline=None, max_examples=200)
@given(rewirings(), st.booleans())
def test_a_rewiring_is_what_building_anew_gives(rewiring, keep_regrown):
    shape, pairs, drop, grown = rewiring
    edges = build(shape, pairs)
    old = sorted(pairs)
    after, change, order = edges.rewired(drop, *columns_of(grown), keep_regrown=keep_regrown)

    gone = {old[k] for k in drop}
    new = sorted(set(old) - gone | set(grown))
    same(after, build(shape, new))
    same(edges, build(shape, pairs))
    remain = set(old) - gone | (gone & set(grown) if keep_regrown else set())
    assert change.origin.tolist() == [old.index(pair) if pair in remain else -1 for pair in new]
    assert (change.before, change.regrown) == (len(old), len(gone & set(grown)))
    assert [grown[k] for k in order] == [pair for pair in new if pair not in remain]


@pytest.mark.parametrize("shape", [(40, 50), (2**31, 2**33), (BIG, BIG), (1, 5000), (5000, 1)])
def test_many_rewirings_in_a_row_are_what_building_anew_gives(shape):
    rng = np.random.default_rng(0)

    def some(count):
        pairs = np.stack(
            [rng.integers(min(n, 10**6), size=count) * (n // min(n, 10**6)) for n in shape], axis=1
        )
        return np.unique(pairs, axis=0)

    edges = Edges.from_coo(*some(900).T, shape)[0]
    for share in (0.3, 0.0, 1.0, 0.5, 0.9):
        drop = rng.permutation(edges.nnz)[: int(share * edges.nnz)]
        kept = edges.without(drop)
        grown = rng.permutation(some(600))
        grown = grown[kept.find(*grown.T) < 0]
        after, change, order = edges.rewired(drop, *grown.T)
        stays = np.delete(np.arange(edges.nnz), drop)
        expected, sort = Edges.from_coo(
            np.append(edges.sources[stays], grown[:, 0]), np.append(edges.targets[stays], grown[:, 1]), shape
        )
        same(after, expected)
        same(kept, Edges(edges.sources[stays], edges.targets[stays], shape))
        np.testing.assert_array_equal(change.origin, np.append(stays, np.full(len(grown), -1))[sort])
        np.testing.assert_array_equal(np.append(stays, np.arange(len(grown)))[sort][change.new], order)
        edges = after


@few
@given(rewirings().filter(lambda r: r[3] or len(r[1]) > len(r[2])), st.data())
def test_an_edge_that_would_be_there_twice_is_refused_as_by_building_anew(rewiring, data):
    shape, pairs, drop, grown = rewiring
    edges, old = build(shape, pairs), sorted(pairs)
    stays = [pair for k, pair in enumerate(old) if k not in drop]
    grown = [*grown, data.draw(st.sampled_from(stays + grown))]
    with pytest.raises(ArgumentError) as anew:
        build(shape, stays + grown)
    for keep_regrown in (False, True):
        with pytest.raises(ArgumentError) as caught:
            edges.rewired(drop, *columns_of(grown), keep_regrown=keep_regrown)
        assert str(caught.value) == str(anew.value)
    same(edges, build(shape, pairs))


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
