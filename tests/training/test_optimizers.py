"""One table of optimizers: each against its twin in torch, and the laws that all of them keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.optimizers import CASES, Case

from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.training import optimizers, step_kernels, transform
from gbnn.training.optimizers import adagrad, adam, adamw, rmsprop, sgd
from gbnn.training.schedules import cosine, one_cycle, step_decay
from gbnn.training.transform import Transform, add_decayed_weights, chain, clip_by_norm, scale
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


SHAPES = {"0.weights": (40,), "0.bias": (5,), "1.weights": (4, 3), "1.gain": (), "2.weights": (0,)}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def random_arrays(seed: int, dtype: Any = np.float64) -> Arrays:
    rng = np.random.default_rng(seed)
    # asarray, because of a shape () the generator makes a number.
    return {name: np.asarray(rng.standard_normal(shape), dtype=dtype) for name, shape in SHAPES.items()}


def copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def same(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(a[k].tobytes() == b[k].tobytes() for k in a)


def torch_steps(case: Case, values: Arrays, gradients: list[Arrays], scheduler: Any = None) -> list[Arrays]:
    """The parameters after each step of the twin."""
    torch = pytest.importorskip("torch")
    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in values.items()}
    optimizer = case.twin(torch.optim, [t for n, t in tensors.items() if case.decays(n)], case.rate)
    rest = [t for n, t in tensors.items() if not case.decays(n)]
    if rest:
        optimizer.add_param_group({"params": rest, "weight_decay": 0.0})
    schedule = scheduler(torch.optim.lr_scheduler, optimizer) if scheduler else None
    result = []
    for step_gradients in gradients:
        for name, tensor in tensors.items():
            tensor.grad = torch.tensor(step_gradients[name])
        if case.clip is not None:
            torch.nn.utils.clip_grad_norm_(list(tensors.values()), case.clip)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        result.append({name: tensor.detach().numpy().copy() for name, tensor in tensors.items()})
    return result


def our_steps(optimizer: Transform, values: Arrays, gradients: list[Arrays]) -> list[Arrays]:
    """The parameters after each of our steps."""
    now, slots, result = copied(values), optimizer.start(values), []
    for step, step_gradients in enumerate(gradients):
        updates = optimizer.update(step_gradients, slots, now, step)
        now = {name: now[name] + updates[name] for name in now}
        result.append(now)
    return result


def assert_steps_equal(ours: list[Arrays], theirs: list[Arrays], rtol: float, atol: float) -> None:
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for name in SHAPES:
            np.testing.assert_allclose(a[name], b[name], rtol, atol, err_msg=f"{name} after step {step}")


def test_the_table_has_every_optimizer() -> None:
    text = " ".join(CASES).replace(",", " ").split()
    assert {*optimizers.__all__, *transform.__all__} - {"InPlace", "Transform"} <= set(text)


# -- Against torch -------------------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize(("dtype", "rtol", "atol"), [(np.float64, 1e-10, 1e-13), (np.float32, 1e-4, 1e-5)])
def test_equals_torch_step_by_step(case: Case, dtype: Any, rtol: float, atol: float) -> None:
    values = random_arrays(0, dtype)
    # Gradients of many sizes, so that clipping takes place at some steps only.
    gradients = [
        {n: np.asarray(g * 0.2 * (1 + k % 5), dtype=dtype) for n, g in random_arrays(k + 1).items()}
        for k in range(25)
    ]
    ours = our_steps(case.make(case.rate), values, gradients)
    assert_steps_equal(ours, torch_steps(case, values, gradients), rtol, atol)


@pytest.mark.parametrize("name", ["sgd momentum", "adamw", "rmsprop", "adagrad", "clip_by_norm, chain"])
@pytest.mark.parametrize(
    ("schedule", "scheduler"),
    [
        (lambda lr: step_decay(lr, 6, 0.5), lambda s, o: s.StepLR(o, 6, 0.5)),
        (lambda lr: cosine(lr, 25, 0.01), lambda s, o: s.CosineAnnealingLR(o, 25, 0.01)),
    ],
    ids=["step_decay", "cosine"],
)
def test_equals_torch_with_its_scheduler(name: str, schedule: Any, scheduler: Any) -> None:
    case = CASES[name]
    if case.clip is not None:  # its twin runs at half the rate, so the floor of the cosine differs
        schedule, scheduler = (lambda lr: step_decay(lr, 6, 0.5)), (lambda s, o: s.StepLR(o, 6, 0.5))
    values, gradients = random_arrays(0), [random_arrays(k + 1) for k in range(25)]
    ours = our_steps(case.make(schedule(case.rate)), values, gradients)
    assert_steps_equal(ours, torch_steps(case, values, gradients, scheduler), 1e-10, 1e-13)


# -- Laws ----------------------------------------------------------------------------------------------------


@every_case
@every_dtype
def test_slots_are_zeros_like_the_parameter(case: Case, dtype: Any) -> None:
    values = random_arrays(0, dtype)
    slots = case.make(case.rate).start(values)
    assert slots.keys() == values.keys()
    for name, own in slots.items():
        assert tuple(sorted(own)) == case.slots
        for slot in own.values():
            assert slot.shape == values[name].shape
            assert slot.dtype == dtype
            assert not slot.any()  # the default fill of Change.carry


@every_case
@every_dtype
def test_update_changes_the_slots_and_nothing_else(case: Case, dtype: Any) -> None:
    optimizer = case.make(one_cycle(case.rate, 10))
    values = random_arrays(0, dtype)
    slots = optimizer.start(values)
    arrays = {name: dict(own) for name, own in slots.items()}
    for step in range(3):
        # A schedule's float64, a float64 gradient or a NumPy step must not turn float32 into float64.
        gradients = random_arrays(step + 1, dtype if step else np.float64)
        kept = copied(gradients), copied(values)
        for array in (*values.values(), *gradients.values()):
            array.flags.writeable = False
        updates = optimizer.update(gradients, slots, values, np.int64(step))
        assert same(gradients, kept[0])
        assert same(values, kept[1])
        assert updates.keys() == values.keys()
        for name, update in updates.items():
            assert update.shape == values[name].shape
            assert update.dtype == dtype
            assert not np.shares_memory(update, values[name])
    for name, own in slots.items():
        for key, slot in own.items():
            assert slot is arrays[name][key]
            assert slot.dtype == dtype
            assert not slot.size or slot.any()


@every_case
def test_same_input_gives_the_same_bits(case: Case) -> None:
    optimizer = case.make(case.rate)
    values, gradients = random_arrays(0), [random_arrays(k + 1) for k in range(5)]
    first, second = (our_steps(optimizer, values, gradients) for _ in range(2))
    assert all(same(a, b) for a, b in zip(first, second, strict=True))


@every_case
@pytest.mark.parametrize("shape", [(100,), (33, 3), (3, 33), (1, 50), (5, 4, 3), (), (0, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_do_not_matter(
    case: Case, shape: tuple[int, ...], order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = [np.asarray(np.random.default_rng(k).standard_normal(shape), order=order) for k in range(4)]
    results = []
    for size in (7, 10**6):
        monkeypatch.setattr(transform, "BLOCK", size)
        results.append(our_steps(case.make(case.rate), {"w": arrays[0]}, [{"w": g} for g in arrays[1:]]))
    for few, one in zip(*results, strict=True):
        np.testing.assert_allclose(few["w"], one["w"], rtol=1e-12)


def edge_gradient(w: Weights, step: int, quiet: Array) -> Array:
    """A gradient that depends on the edge, not on its position; zero for the `quiet` edges."""
    keys = (w.sources * 31 + w.targets).astype(np.float64)
    gradient: Array = np.where(np.isin(keys, quiet), 0.0, np.sin(keys * (step + 1)))
    return gradient


@every_case
@settings(deadline=None)
@given(data=st.data())
def test_state_follows_its_edge(case: Case, data: st.DataObject) -> None:
    """Kept edges move on as if nothing had happened; new ones as edges that never had a gradient."""
    places = data.draw(st.permutations(range(30)), "places")
    nnz = data.draw(st.integers(1, 29), "nnz")
    count = data.draw(st.integers(0, min(nnz, 30 - nnz)), "count")
    drop = sorted(data.draw(st.permutations(range(nnz)), "drop")[:count])
    old, grown = np.array(places[:nnz]), np.array(places[nnz : nnz + count], dtype=np.int64)
    w = Weights.from_coo(old // 6, old % 6, np.cos(old), (5, 6), dtype=np.float64)
    still = Weights.from_coo(old // 6, old % 6, np.cos(old), (5, 6), dtype=np.float64)
    # After the rewiring, dropped and new edges are quiet, so that the norm of the gradient stays the same.
    quiet = np.concatenate([w.sources[drop] * 31 + w.targets[drop], grown // 6 * 31 + grown % 6])

    optimizer = case.make(case.rate)
    slots, still_slots = (optimizer.start({"w": x.values}) for x in (w, still))
    change = None
    for step in range(6):
        if step == 3:
            change = w.rewire(drop, grown // 6, grown % 6, 0.0)
            slots = {"w": {name: change.carry(slot) for name, slot in slots["w"].items()}}
        hush = quiet if step >= 3 else np.empty(0)
        update, still_update = (
            optimizer.update({"w": edge_gradient(x, step, hush)}, s, {"w": x.values}, step)["w"]
            for x, s in ((w, slots), (still, still_slots))
        )
        w.add(update)
        still.add(still_update)
        if change is not None:
            kept = np.flatnonzero(change.origin >= 0)
            origin = change.origin[kept]
            np.testing.assert_allclose(update[kept], still_update[origin], rtol=1e-12, atol=1e-13)
            for name, slot in slots["w"].items():
                np.testing.assert_allclose(slot[kept], still_slots["w"][name][origin], 1e-12, 1e-13)
            assert not update[change.new].any()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.slots])
def test_state_left_behind_does_harm(name: str) -> None:
    """The law above has teeth: without `carry` a kept edge gets another update."""
    optimizer = CASES[name].make(0.1)
    w = Weights.from_coo([0, 1, 2, 3], [0, 0, 0, 0], [1.0, 2.0, 3.0, 4.0], (4, 2), dtype=np.float64)
    slots = optimizer.start({"w": w.values})
    optimizer.update({"w": np.array([1.0, 2.0, 4.0, 8.0])}, slots, {"w": w.values}, 0)
    change = w.rewire([3], [0], [1])
    carried = {"w": {key: change.carry(slot) for key, slot in slots["w"].items()}}
    args = {"w": np.ones(4)}, {"w": w.values}
    right = optimizer.update(args[0], carried, args[1], 1)["w"]
    wrong = optimizer.update(args[0], slots, args[1], 1)["w"]
    assert not np.isclose(right[2], wrong[2], rtol=1e-3)


@every_case
@every_dtype
def test_minimises_a_quadratic(case: Case, dtype: Any) -> None:
    optimizer = case.make(cosine(case.rate, 600))
    values, goal = random_arrays(0, dtype), random_arrays(1, dtype)
    curvature = {name: np.abs(array) + 0.5 for name, array in random_arrays(2, dtype).items()}

    def loss() -> float:
        return sum(float((curvature[n] * (values[n] - goal[n]) ** 2).sum()) for n in values)

    slots, before = optimizer.start(values), loss()
    for step in range(600):
        gradients = {n: np.asarray(curvature[n] * (values[n] - goal[n])) for n in values}
        updates = optimizer.update(gradients, slots, values, step)
        values = {n: np.asarray(values[n] + updates[n]) for n in values}
    assert loss() < 1e-3 * before


@every_case
def test_numbers_beyond_the_dtype_pass_without_a_warning(case: Case) -> None:
    """Warnings are errors here; a gradient that overflows is for the training loop to find."""
    optimizer, values = case.make(case.rate), {"w": np.ones(3, dtype=np.float32)}
    slots = optimizer.start(values)
    for step, large in enumerate((1e-30, 3e38, -3e38)):
        optimizer.update({"w": np.full(3, large, dtype=np.float32)}, slots, values, step)
    if case.clip is None:
        bad = {"w": np.array([1.0, math.nan, math.inf], dtype=np.float32)}
        update = optimizer.update(bad, optimizer.start(values), values, 0)["w"]
        assert np.isfinite(update).tolist()[:2] == [True, False]


# -- In place ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.make(0.1).in_place])
@pytest.mark.parametrize("parameter", ["weights", "bias"])
@every_dtype
def test_a_compiled_step_is_the_rule_to_the_bit(name: str, parameter: str, dtype: Any) -> None:
    """Of all values, of runs of touched ones longer and shorter than a vector loop, of none."""
    rng = np.random.default_rng(0)
    optimizer, size = CASES[name].make(cosine(0.1, 20, 0.01)), 3 * step_kernels.CHUNK + 5
    in_place = optimizer.in_place
    assert in_place is not None
    values, slots = rng.standard_normal(size).astype(dtype), {}
    theirs, their_slots = values.copy(), optimizer.init(values)
    slots = {key: slot.copy() for key, slot in their_slots.items()}
    for step, share in enumerate((1.0, 0.0, 0.001, 0.5, 0.99, 1.0)):
        at = np.flatnonzero(rng.random(size) < share)
        gradient = (rng.standard_normal(at.size) * 10.0 ** rng.integers(-12, 3, at.size)).astype(dtype)
        gradient[::7] = 0.0
        own = {key: slot[at] for key, slot in their_slots.items()}
        given = {parameter: gradient}, {parameter: own}, {parameter: theirs[at]}
        theirs[at] += optimizer.update(*given, step)[parameter]
        for key, slot in own.items():
            their_slots[key][at] = slot
        before = gradient.copy()
        kept = [slots[key] for key in in_place.names]
        in_place.step(parameter, step, gradient, values, kept, None if step == 5 else at)
        assert np.array_equal(gradient, before)
        assert values.tobytes() == theirs.tobytes()
        for key, slot in slots.items():
            assert slot.tobytes() == their_slots[key].tobytes(), key


def test_a_compiled_step_lets_numbers_beyond_the_dtype_pass() -> None:
    for name, case in CASES.items():
        optimizer = case.make(case.rate)
        if optimizer.in_place is not None:
            values = np.ones(3, dtype=np.float32)
            slots = list(optimizer.init(values).values())
            for step, large in enumerate((1.0, math.nan, math.inf)):
                numbers = np.array([1.0, large, 3e38], dtype=np.float32)
                optimizer.in_place.step("w", step, numbers, values, slots, None)
            assert np.isfinite(values).tolist()[:2] == [True, False], name


# -- Parts ---------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    numbers=st.lists(st.floats(-1e6, 1e6, width=32), max_size=20),
    max_norm=st.floats(1e-3, 1e3),
    cut=st.integers(0, 20),
)
def test_clipping_shortens_and_keeps_the_direction(numbers: list[float], max_norm: float, cut: int) -> None:
    whole = np.array(numbers, dtype=np.float64)
    gradients = {"a": whole[:cut], "b": whole[cut:]}
    clip = clip_by_norm(max_norm)
    updates = clip.update(gradients, clip.start(gradients), gradients, 0)
    norm = math.sqrt(float(whole @ whole))
    clipped = np.concatenate([updates["a"], updates["b"]])
    expected = whole * min(1.0, max_norm / (norm + 1e-6))
    np.testing.assert_allclose(clipped, expected, rtol=1e-12, atol=1e-300)
    assert math.sqrt(float(clipped @ clipped)) <= max_norm * (1 + 1e-12)


def test_clipping_sums_float32_in_float64() -> None:
    gradients = {"w": np.full(4, 1e30, dtype=np.float32)}  # the square overflows float32
    clip = clip_by_norm(1.0)
    update = clip.update(gradients, {"w": {}}, gradients, 0)["w"]
    np.testing.assert_allclose(update, 0.5, rtol=1e-6)


@pytest.mark.parametrize("max_norm", [0.1, 100.0])
def test_clipped_or_not_the_dtype_is_that_of_the_parameter(max_norm: float) -> None:
    values, gradients = {"w": np.ones(4, dtype=np.float32)}, {"w": np.ones(4)}
    assert clip_by_norm(max_norm).update(gradients, {"w": {}}, values, 0)["w"].dtype == np.float32


def test_clipping_names_the_gradient_that_is_not_finite() -> None:
    gradients = {"a": np.ones(2), "b": np.array([1.0, math.nan])}
    with pytest.raises(NonFiniteError, match=r"b: .* nan at \[1\]"):
        clip_by_norm(1.0).update(gradients, {"a": {}, "b": {}}, gradients, 0)


def test_chain_is_associative_and_keeps_slots_apart() -> None:
    parts = [sgd(0.5, momentum=0.9), rmsprop(0.1, momentum=0.5), scale(step_decay(-2.0, 2, 0.5))]
    values, gradients = random_arrays(0), [random_arrays(k + 1) for k in range(5)]
    flat = chain(*parts)
    left, right = chain(chain(*parts[:2]), parts[2]), chain(parts[0], chain(*parts[1:]))
    expected = our_steps(flat, values, gradients)
    for other in (left, right, chain(chain(), flat)):
        assert all(same(a, b) for a, b in zip(our_steps(other, values, gradients), expected, strict=True))
    assert sorted(flat.init(values["0.bias"])) == ["0.momentum", "1.momentum", "1.square"]
    assert sorted(right.init(values["0.bias"])) == ["0.momentum", "1.0.momentum", "1.0.square"]


def test_chain_of_more_than_ten_tells_1_from_10() -> None:
    parts = [scale(1.0) for _ in range(11)]
    parts[1] = parts[10] = sgd(1.0, momentum=0.5)
    optimizer, values = chain(*parts), {"w": np.zeros(1)}
    slots = optimizer.start(values)
    assert optimizer.update({"w": np.array([3.0])}, slots, values, 0)["w"] == 3.0
    assert {key: slot.item() for key, slot in slots["w"].items()} == {"1.momentum": 3.0, "10.momentum": -3.0}


class Lazy:
    """A gradient that is made when asked for, as a pullback's may be."""

    def __init__(self, array: Array) -> None:
        self.array, self.asked = array, 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self.asked += 1
        return np.array(self.array, dtype=dtype)


@every_case
def test_a_lazy_gradient_is_asked_once(case: Case) -> None:
    optimizer, values = case.make(case.rate), {"w": np.arange(4.0)}
    lazy = Lazy(np.array([1.0, -2.0, 0.0, 4.0]))
    made = optimizer.update({"w": lazy}, optimizer.start(values), values, 0)
    plain = optimizer.update({"w": lazy.array}, optimizer.start(values), values, 0)
    assert same(made, plain)
    assert lazy.asked == 1


# -- Errors --------------------------------------------------------------------------------------------------


@every_case
def test_what_does_not_fit_is_refused(case: Case) -> None:
    optimizer, values = case.make(case.rate), {"w": np.ones(3), "b": np.ones(2)}
    slots = optimizer.start(values)
    with pytest.raises(ArgumentError, match=r"gradients: .*'w'"):
        optimizer.update({"b": values["b"]}, slots, values, 0)
    with pytest.raises(ArgumentError, match="gradient of w: expected shape"):
        optimizer.update({"w": np.ones(1), "b": np.ones(2)}, slots, values, 0)
    with pytest.raises(ArgumentError, match="slots: "):
        optimizer.update(values, {"w": slots["w"]}, values, 0)
    assert not any(slot.any() for own in slots.values() for slot in own.values())
    if case.slots:
        with pytest.raises(ArgumentError, match=r"(momentum|square) of w: expected shape \(3,\)"):
            optimizer.update(values, {**slots, "w": slots["b"]}, values, 0)
        with pytest.raises(ArgumentError, match="slots of w"):
            optimizer.update(values, {**slots, "w": {}}, values, 0)
        with pytest.raises(KindError, match="values"):
            optimizer.init(np.ones(3, dtype=np.int64))
    with pytest.raises(ArgumentError, match="learning_rate at step 4"):
        case.make(lambda step: 1.0 - step / 3).update(values, slots, values, 4)
    with pytest.raises(ArgumentError, match="step"):
        optimizer.update(values, slots, values, -1)


BAD_RATES: list[tuple[Any, type[GbnnError]]] = [
    (-0.1, ArgumentError),
    (math.nan, ArgumentError),
    (math.inf, ArgumentError),
    ("0.1", KindError),
    (None, KindError),
]


@every_case
@pytest.mark.parametrize(("rate", "error"), BAD_RATES)
def test_bad_learning_rates_are_refused(case: Case, rate: Any, error: type[GbnnError]) -> None:
    with pytest.raises(error) as caught:
        case.make(rate)
    assert caught.value.where == "learning_rate"


@pytest.mark.parametrize(
    ("make", "error", "where"),
    [
        (lambda: sgd(0.1, momentum=1.0), ArgumentError, "momentum"),
        (lambda: sgd(0.1, momentum=-0.1), ArgumentError, "momentum"),
        (lambda: sgd(0.1, nesterov=True), ArgumentError, "nesterov"),
        (lambda: sgd(0.1, weight_decay=-1.0), ArgumentError, "weight_decay"),
        (lambda: adam(beta1=1.0), ArgumentError, "beta1"),
        (lambda: adam(beta2=-0.5), ArgumentError, "beta2"),
        (lambda: adam(beta2="0.9"), KindError, "beta2"),
        (lambda: adam(epsilon=0.0), ArgumentError, "epsilon"),
        (lambda: adam(weight_decay=math.nan), ArgumentError, "weight_decay"),
        (lambda: adamw(beta1=1.5), ArgumentError, "beta1"),
        (lambda: adamw(weight_decay=-1e-2), ArgumentError, "weight_decay"),
        (lambda: rmsprop(alpha=1.0), ArgumentError, "alpha"),
        (lambda: rmsprop(epsilon=-1e-8), ArgumentError, "epsilon"),
        (lambda: rmsprop(momentum=True), KindError, "momentum"),
        (lambda: rmsprop(weight_decay=-1.0), ArgumentError, "weight_decay"),
        (lambda: adagrad(epsilon=0.0), ArgumentError, "epsilon"),
        (lambda: adagrad(weight_decay=-1.0), ArgumentError, "weight_decay"),
        (lambda: add_decayed_weights(-1e-4), ArgumentError, "rate"),
        (lambda: clip_by_norm(0.0), ArgumentError, "max_norm"),
        (lambda: clip_by_norm(math.inf), ArgumentError, "max_norm"),
        (lambda: scale(math.nan), ArgumentError, "by"),
        (lambda: scale(None), KindError, "by"),
        (lambda: chain(sgd(0.1), adam), KindError, "transforms[1]"),
    ],
)
def test_bad_arguments_are_named(make: Any, error: type[GbnnError], where: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert caught.value.where == where
