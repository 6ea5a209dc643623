"""`Weights`: views that follow the values, memory that follows the edges, rewiring as of a dictionary."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest
from graphblas import monoid, semiring
from hypothesis import given
from hypothesis import strategies as st
from support.memory import peak_while
from support.weights import (
    BIG,
    build,
    equal,
    few,
    huge_shapes,
    model_of,
    models,
    numbers,
    shapes,
    some,
    views_fit,
)

from gbnn import storage
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.weights import Weights

# -- Memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "count"), [((BIG, BIG), 1000), ((10**9, 10**9), 100_000)])
def test_memory_follows_the_edges_alone(shape, count):
    rng = np.random.default_rng(0)
    sources, targets = rng.integers(shape[0], size=count), rng.integers(shape[1], size=count)
    values = rng.normal(size=count)

    def make():
        weights = Weights.from_coo(sources, targets, values, shape)
        assert weights.by_target.nvals == weights.by_source.nvals == count
        return weights

    make().rewire([0], [1], [1])  # compiles, if nothing has yet
    peak, weights = peak_while(make)
    # Every edge has two neurons of its own here. Both views: 2 x (id, start, other end), the order between
    # them, two float32 values.
    assert weights.nbytes <= 64 * count + 16
    assert peak < 64 * count * 1.5 + 20_000

    def rewire():
        change = weights.rewire(
            np.arange(count // 10), sources[: count // 10] ^ 1, targets[: count // 10], 0.5
        )
        assert weights.by_target.nvals == weights.by_source.nvals == count
        return change

    peak, change = peak_while(rewire)
    assert change.grown == count // 10
    assert peak < 64 * count * 3 + 20_000


def test_nbytes_is_what_the_arrays_hold_whatever_has_been_asked_for():
    weights = some()
    held = sum(a.nbytes for a in (*weights.edges.by_source, weights.values))
    assert weights.nbytes == held
    weights.by_target  # noqa: B018
    assert weights.nbytes == held


def test_views_share_the_arrays():
    weights = Weights.from_coo(np.arange(100_000), np.arange(100_000)[::-1], 1.0, (BIG, BIG))
    weights.edges.by_target, weights.values_by_target  # noqa: B018
    peak, _ = peak_while(lambda: (weights.by_source, weights.by_target))
    assert peak < 20_000


# -- Products ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 17, 128])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("view", ["by_target", "by_source"])
def test_dense_products_run_in_place_in_the_fastest_kernel(view, dtype, batch):
    rng = np.random.default_rng(0)
    weights = Weights.from_coo(
        rng.permutation(60)[:40], rng.permutation(50)[:40], rng.normal(size=40), (60, 50), dtype=dtype
    )
    matrix = getattr(weights, view)
    x = np.asfortranarray(rng.normal(size=(batch, matrix.nrows)).astype(dtype))
    bias = rng.normal(size=matrix.ncols).astype(dtype)
    out = storage.Output(batch, matrix.ncols, dtype, bias)
    with storage.kernel_report() as report:
        out.matrix(monoid.plus) << semiring.plus_times(storage.lend_full(x) @ matrix)
    assert report.kernels == ["saxpy5"]
    assert report.in_place
    dense = weights.to_dense().T if view == "by_source" else weights.to_dense()
    np.testing.assert_allclose(out.take(), x @ dense + bias, rtol=0, atol=100 * np.finfo(dtype).eps)


@few
@given(models(), st.integers(1, 3))
def test_products_are_dense_ones(layer, batch):
    weights = build(*layer, np.float64)
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(batch, weights.in_features)))
    out = storage.Output(batch, weights.out_features, np.float64)
    out.matrix(monoid.plus) << semiring.plus_times(storage.lend_full(x) @ weights.by_target)
    np.testing.assert_allclose(out.take(), x @ weights.to_dense(), atol=1e-9)


def test_views_are_made_once_whichever_thread_asks_first(monkeypatch):
    lend = storage.lend_columns

    def slowly(*arguments):
        time.sleep(0.01)
        return lend(*arguments)

    monkeypatch.setattr(storage, "lend_columns", slowly)
    for _ in range(3):
        weights = Weights.from_coo(np.arange(500), np.arange(500)[::-1], np.arange(1.0, 501), (500, 500))
        barrier, seen = threading.Barrier(4), []

        def ask(weights=weights, barrier=barrier, seen=seen):
            barrier.wait()
            seen.append((weights.by_target, weights.by_source, weights.values_by_target.copy()))

        workers = [threading.Thread(target=ask) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len({(id(a), id(b)) for a, b, _ in seen}) == 1
        assert all((values == np.arange(500, 0, -1)).all() for *_, values in seen)


# -- Values --------------------------------------------------------------------------------------------------


def test_values_are_read_only():
    weights = some()
    for array in (weights.values, weights.targets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    weights.sources[0] = 2
    equal(weights, some())


@few
@given(models(), st.data())
def test_every_view_follows_the_values(layer, data):
    weights = build(*layer)
    views = weights.by_target, weights.by_source
    model = model_of(weights)
    new = np.array(data.draw(st.lists(numbers, min_size=len(model), max_size=len(model))), dtype=np.float32)
    for change, expected in (
        (lambda: weights.assign(new), new),
        (lambda: weights.add(new), new + new),
        (lambda: weights.assign(list(new)), new),
        (lambda: weights.assign(0.5), np.full_like(new, 0.5)),
        (lambda: weights.add(new.astype(np.float64)), new + np.float32(0.5)),
    ):
        before = weights.stamp
        change()
        assert weights.stamp != before
        np.testing.assert_array_equal(weights.values, expected)
        views_fit(weights)
        assert weights.by_target is views[0]
        assert weights.by_source is views[1]


@pytest.mark.parametrize("method", ["assign", "add"])
@pytest.mark.parametrize(
    "values",
    [np.zeros(2), np.zeros(1), np.zeros((3, 1)), np.zeros((1, 3)), ["a"] * 3, np.zeros(3) * 1j, None],
)
def test_values_that_do_not_fit_change_nothing(method, values):
    weights = some()
    before = weights.stamp
    with pytest.raises(GbnnError, match=r"^(values|update): expected"):
        getattr(weights, method)(values)
    assert weights.stamp == before
    equal(weights, some())


def test_values_given_to_the_constructor_are_kept_where_they_are():
    values = np.array([1.0, 2.0, 3.0])
    weights = Weights(some().edges, values)
    assert np.shares_memory(weights.values, values)
    spread = Weights(some().edges, np.arange(6.0)[::2])
    views_fit(spread)


def test_astype_copies_the_values_and_shares_the_edges():
    weights = some()
    wide = weights.astype(np.float64)
    wide.assign(0.0)
    assert wide.edges is weights.edges
    assert wide.dtype == np.float64
    equal(weights, some())
    assert not np.shares_memory(weights.astype(np.float32).values, weights.values)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_is_equal_and_its_own(duplicate):
    for dtype in (np.float32, np.float64):
        weights = some(dtype)
        views_fit(weights)
        other = duplicate(weights)
        equal(other, weights)
        views_fit(other)
        other.assign(7.0)
        other.rewire([0], [1], [1], 5.0)
        equal(weights, some(dtype))
        views_fit(weights)
        views_fit(other)


def test_fans_count_the_edges_of_the_neurons_that_have_any():
    weights = Weights.from_coo([5, 5, 9], [2, 7, 7], 1.0, (BIG, BIG))
    assert [part.tolist() for part in weights.fan_in()] == [[2, 7], [1, 2]]
    assert [part.tolist() for part in weights.fan_out()] == [[5, 9], [2, 1]]


# -- Rewiring ------------------------------------------------------------------------------------------------


@few
@given(models(shapes | huge_shapes), st.data())
def test_rewiring_is_what_a_dictionary_would_do(layer, data):
    shape, model = layer
    weights = build(shape, model)
    if data.draw(st.booleans()):
        views_fit(weights)
    old = list(model_of(weights))
    tag = np.arange(10.0, 10 + len(old))
    drop = data.draw(st.lists(st.sampled_from(range(len(old))), unique=True)) if old else []
    free = st.tuples(*(st.integers(0, n - 1) for n in shape))
    stays = {edge for k, edge in enumerate(old) if k not in drop}
    grown = data.draw(st.dictionaries(free.filter(lambda edge: edge not in stays), numbers, max_size=5))
    # One of the dropped may come back: as a new edge.
    if drop and data.draw(st.booleans()):
        grown[old[drop[0]]] = 1.5
    expected = {edge: value for edge, value in model.items() if edge in stays} | grown
    before = weights.stamp

    change = weights.rewire(drop, [i for i, _ in grown], [j for _, j in grown], list(grown.values()))

    assert model_of(weights) == expected
    assert list(model_of(weights)) == sorted(expected)
    assert (change.dropped, change.grown, change.before) == (len(drop), len(grown), len(old))
    carried = dict(zip(model_of(weights), change.carry(tag, fill=-1).tolist(), strict=True))
    assert carried == {e: -1 if e in grown else 10.0 + old.index(e) for e in expected}
    assert weights.stamp != before
    views_fit(weights)


@few
@given(models(shapes | huge_shapes), st.data())
def test_a_regrown_edge_keeps_its_value_where_asked(layer, data):
    shape, model = layer
    weights = build(shape, model)
    old = list(model_of(weights))
    drop = data.draw(st.lists(st.sampled_from(range(len(old))), unique=True)) if old else []
    back = data.draw(st.lists(st.sampled_from([old[k] for k in drop]), unique=True)) if drop else []
    others = st.tuples(*(st.integers(0, n - 1) for n in shape)).filter(lambda edge: edge not in model)
    new = data.draw(st.lists(others, unique=True, max_size=4)) if len(old) < shape[0] * shape[1] else []
    grown = dict.fromkeys(data.draw(st.permutations(back + new)), 0.0) | {
        e: float(k) for k, e in enumerate(new)
    }
    gone = {old[k] for k in drop} - set(back)
    expected = {e: v for e, v in model.items() if e not in gone} | {e: grown[e] for e in new}
    slot = np.arange(10.0, 10 + len(old))

    ends = [e[0] for e in grown], [e[1] for e in grown]
    change = weights.rewire(drop, *ends, list(grown.values()), keep_regrown=True)

    assert model_of(weights) == expected
    assert (change.dropped, change.grown, change.regrown) == (len(gone), len(new), len(back))
    carried = dict(zip(model_of(weights), change.carry(slot, fill=-1).tolist(), strict=True))
    assert carried == {e: -1 if e in new else 10.0 + old.index(e) for e in expected}
    views_fit(weights)


def test_a_rewired_layer_leaves_what_was_lent_before_as_it_was():
    weights = some()
    old = weights.by_target
    weights.rewire([0], [0], [0], 9.0)
    gc.collect()
    noise = [np.full(3, 77.0, dtype=np.float32) for _ in range(20)]
    assert dict(zip(*(p.tolist() for p in old.to_coo()[1:]), strict=True)) == {1: 1.0, 0: 2.0, 3: 3.0}
    assert weights.by_target is not old
    assert len(noise) == 20


@pytest.mark.parametrize("kind", [np.uint64, np.int8, list])
def test_any_integers_rewire(kind):
    indices = list if kind is list else lambda numbers: np.array(numbers, dtype=kind)
    weights = some()
    weights.rewire(indices([1]), indices([1]), indices([1]))
    assert model_of(weights) == {(0, 1): 1.0, (1, 1): 0.0, (2, 3): 3.0}


def test_rewiring_nothing_changes_nothing():
    weights = some()
    change = weights.rewire([], [], [])
    assert (change.dropped, change.grown) == (0, 0)
    equal(weights, some())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([3], [], []), ArgumentError),
        (([-1], [], []), ArgumentError),
        (([0, 0], [], []), ArgumentError),
        (([0.0], [], []), KindError),
        (([True, False, False], [], []), KindError),
        (([[0]], [], []), ArgumentError),
        ((0, [], []), ArgumentError),
        (([], [0], [1]), ArgumentError),  # is there already
        (([], [0, 0], [0, 0]), ArgumentError),
        (([], [3], [0]), ArgumentError),
        (([], [0], [-1]), ArgumentError),
        (([], [0, 1], [0]), ArgumentError),
        (([], [0.0], [0]), KindError),
        (([], 0, 0), ArgumentError),
        (([], [0], [0], [1.0, 2.0]), ArgumentError),
        (([], [0], [0], [[1.0]]), ArgumentError),
        (([], [0], [0], ["a"]), KindError),
        (([], [0], [0], np.nan), NonFiniteError),
        (([], [0], [0], [1e39]), NonFiniteError),
    ],
)
def test_a_rewiring_that_cannot_be_leaves_everything_as_it_was(arguments, error):
    weights = some()
    views = weights.by_target, weights.by_source
    before = weights.stamp
    with pytest.raises(error):
        weights.rewire(*arguments)
    equal(weights, some())
    assert weights.stamp == before
    assert weights.by_target is views[0]
    assert weights.by_source is views[1]


def test_a_stamp_never_comes_again():
    weights = some()
    stamps = [weights.stamp]
    for k in range(10):
        weights.assign(1.0)
        stamps.append(weights.stamp)
        weights.add(np.ones(3))
        stamps.append(weights.stamp)
        weights.rewire([1], [1], [k % 4])  # the edge in the middle, which is the one in row 1 or becomes it
        stamps.append(weights.stamp)
    assert len(set(stamps)) == len(stamps) == 31


def test_an_empty_layer_is_a_layer():
    weights = Weights(Edges.from_coo([], [], (3, 2))[0], np.empty(0, dtype=np.float32))
    assert (weights.nnz, weights.density) == (0, 0.0)
    assert weights.by_target.nvals == weights.by_source.nvals == 0
    np.testing.assert_array_equal(weights.to_scipy().toarray(), np.zeros((3, 2)))
    assert weights.rewire([], [1], [1], 4.0).grown == 1
    assert model_of(weights) == {(1, 1): 4.0}
    assert weights.rewire([0], [], []).dropped == 1
    views_fit(weights)


# -- What a lazy optimizer owes ------------------------------------------------------------------------------


class Debt:
    """Owes every edge one addition of 1; says what it was asked for."""

    def __init__(self, nnz: int) -> None:
        self.paid = np.zeros(nnz, dtype=bool)
        self.asked: list[Any] = []

    def __call__(self, values: Any, positions: Any) -> None:
        self.asked.append(positions)
        at = np.arange(values.size) if positions is None else positions
        at = at[~self.paid[at]]
        values[at] += 1
        self.paid[at] = True


def owing() -> tuple[Weights, Debt]:
    w = Weights.from_coo([0, 0, 1, 2], [0, 1, 1, 0], [1.0, 2.0, 3.0, 4.0], shape=(3, 2), dtype=np.float64)
    assert w.values_by_target.tolist() == [1.0, 4.0, 2.0, 3.0]  # a view that could be stale later
    debt = Debt(4)
    w.pending = debt
    return w, debt


def test_settling_some_and_all():
    w, debt = owing()
    before = w.stamp
    w.settle(np.array([2]))
    assert w.raw.tolist() == [1.0, 2.0, 4.0, 4.0]
    assert w.pending is debt
    w.settle()
    assert w.raw.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert w.pending is None
    w.settle()
    assert len(debt.asked) == 2
    assert w.values_by_target.tolist() == [2.0, 5.0, 3.0, 4.0]
    assert w.stamp == before
    with pytest.raises(ValueError, match="read-only"):
        w.raw[0] = 1.0


def test_the_view_by_target_is_never_stale():
    w, _ = owing()
    w.settle(np.array([2]))
    assert w.values_by_target.tolist() == [2.0, 5.0, 3.0, 4.0]
    assert w.pending is None
    w, _ = owing()
    w.add_at([1], [0.5])
    assert w.raw.tolist() == [1.0, 3.5, 3.0, 4.0]
    assert w.values_by_target.tolist() == [2.0, 5.0, 3.5, 4.0]


def test_a_new_debt_settles_the_one_before():
    w, _ = owing()
    w.pending = Debt(4)
    assert w.raw.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert w.values.tolist() == [3.0, 4.0, 5.0, 6.0]


def test_writing_settles_first():
    for write, expected in (
        (lambda w: w.assign(7.0), [7.0] * 4),
        (lambda w: w.add(np.ones(4)), [3.0, 4.0, 5.0, 6.0]),
        (lambda w: w.rewire([0], [2], [1], 9.0), [3.0, 4.0, 5.0, 9.0]),
    ):
        w, debt = owing()
        before = w.stamp
        write(w)
        assert w.pending is None
        assert debt.paid.all()
        assert w.values.tolist() == expected
        assert w.stamp != before


def test_writing_at_some_edges_settles_those():
    for write, expected in (
        (lambda w: w.add_at([3, 0], [1.0, 2.0]), [4.0, 2.0, 3.0, 6.0]),
        (lambda w: w.assign_at(np.array([3, 0]), 2.0), [2.0, 2.0, 3.0, 2.0]),
    ):
        w, debt = owing()
        before = w.stamp
        write(w)
        assert w.pending is debt
        assert debt.paid.tolist() == [True, False, False, True]
        assert w.raw.tolist() == expected
        assert w.stamp != before


@pytest.mark.parametrize("write", [Weights.add_at, Weights.assign_at])
def test_writing_at_edges_that_are_not_there(write: Any):
    w, debt = owing()
    for positions, came, error in (
        ([4], [1.0], ArgumentError),
        ([-1], [1.0], ArgumentError),
        ([0, 1], [1.0], ArgumentError),
        ([0.5], [1.0], KindError),
        ([0], ["1"], KindError),
    ):
        with pytest.raises(error, match=r"positions|update|values"):
            write(w, positions, came)
    assert not debt.asked
    write(w, [], 1.0)
    assert not debt.paid.any()


@pytest.mark.parametrize("positions", [[4], [-1], [0.5], [[0]]])
def test_settling_edges_that_are_not_there(positions: Any):
    w, debt = owing()
    with pytest.raises(GbnnError, match="positions"):
        w.settle(positions)
    assert not debt.asked
