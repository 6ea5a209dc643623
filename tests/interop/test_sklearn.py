"""The scikit-learn estimators on sparse data: same results in every form, in the memory of the entries."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from support.memory import peak_while

from gbnn import topology
from gbnn.errors import ArgumentError, GbnnError
from gbnn.interop.sklearn import SparseMLPClassifier, SparseMLPRegressor
from gbnn.rows import SparseRows

SMALL = {
    "hidden_layer_sizes": 16,
    "batch_size": 32,
    "learning_rate_init": 0.02,
    "max_iter": 3,
    "random_state": 0,
}
KINDS = [SparseMLPClassifier, SparseMLPRegressor]


def problem(rows=120, features=40, seed=0, dtype=np.float64):
    """Sparse rows whose class is that of their first feature's half."""
    rng = np.random.default_rng(seed)
    x = sp.random_array((rows, features), density=0.15, format="csr", rng=rng, dtype=dtype)
    y = (x[:, [0, 1, 2]].sum(axis=1) > x[:, [3, 4, 5]].sum(axis=1)).astype(int)
    return x, np.asarray(y).ravel()


def widened(x, features, seed=1):
    """Return the same entries with the columns spread over so many features."""
    places = np.sort(np.random.default_rng(seed).choice(2**40, x.shape[1], replace=False))
    places = (
        places * (features // 2**40)
        if features >= 2**40
        else np.arange(x.shape[1]) * (features // x.shape[1])
    )
    return sp.csr_array((x.data, places[x.indices], x.indptr.astype(np.int64)), shape=(x.shape[0], features))


def outputs(model, x):
    return model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)


# -- Forms of X ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fan", [4, "auto"])
@pytest.mark.parametrize("rewiring", [None, topology.set_])
def test_sparse_and_dense_rows_give_the_same(kind, fan, rewiring):
    x, y = problem()
    make = lambda: kind(**SMALL, edges_per_feature=fan, rewiring=rewiring)  # noqa: E731
    sparse, dense = make().fit(x, y), make().fit(x.toarray(), y)
    np.testing.assert_allclose(outputs(sparse, x), outputs(dense, x.toarray()), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(outputs(sparse, x.toarray()), outputs(dense, x), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(sparse.loss_curve_, dense.loss_curve_)


@pytest.mark.parametrize("form", [sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix, sp.dok_array])
def test_every_sparse_format_gives_the_same(form):
    x, y = problem()
    expected = outputs(SparseMLPClassifier(**SMALL, edges_per_feature=4).fit(x, y), x)
    other = SparseMLPClassifier(**SMALL, edges_per_feature=4).fit(form(x), y)
    np.testing.assert_array_equal(outputs(other, form(x)), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_graphblas_and_of_ours_give_the_same(kind):
    x, y = problem()
    for matrix in (x, widened(x, 2**60)):
        rows = SparseRows.of(matrix)
        expected = outputs(kind(**SMALL, edges_per_feature=4).fit(matrix, y), matrix)
        for form in (rows, rows.to_graphblas()):
            model = kind(**SMALL, edges_per_feature=4).fit(form, y)
            np.testing.assert_array_equal(outputs(model, form), expected)
            assert model.score(form, y) == model.score(matrix, y)
            model.partial_fit(form, y)
    model = kind(**SMALL).fit(SparseRows.of(x).to_graphblas(), y)
    with pytest.raises(ValueError, match="39 features"):
        model.predict(SparseRows.of(x[:, :39]))


def test_unsorted_and_duplicate_entries_count_as_scipy_counts_them():
    x, y = problem()
    rows, columns = x.tocoo().coords
    twice = sp.csr_array((np.tile(x.data / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=x.shape)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(x.indptr[:-1], x.indptr[1:], strict=True)])
    messy = sp.csr_array((x.data[order], x.indices[order], x.indptr), shape=x.shape)
    expected = outputs(SparseMLPClassifier(**SMALL).fit(x, y), x)
    for form in (twice, messy):
        np.testing.assert_allclose(outputs(SparseMLPClassifier(**SMALL).fit(form, y), form), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_of_x_is_kept(dtype):
    x, y = problem(dtype=dtype)
    model = SparseMLPClassifier(**SMALL, edges_per_feature=4).fit(x, y)
    assert {p.dtype for p in model.model_.parameters().values()} == {np.dtype(dtype)}
    assert model.predict_proba(x).dtype == dtype
    assert model.predict_proba(x.astype(np.float64)).dtype == dtype
    assert SparseMLPRegressor(**SMALL).fit(x, y).predict(x).dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_columns_up_to_two_to_the_sixty(kind):
    x, y = problem()
    small, wide = kind(**SMALL, edges_per_feature=4), kind(**SMALL, edges_per_feature=4)
    huge = widened(x, 2**60)
    np.testing.assert_allclose(
        outputs(wide.fit(huge, y), huge), outputs(small.fit(x, y), x), rtol=1e-6, atol=1e-9
    )
    assert wide.n_features_in_ == 2**60
    partly = huge[:50]
    outputs(wide.partial_fit(partly, y[:50]), partly)


def test_features_that_do_not_occur_get_no_edges():
    x, y = problem()
    wide = widened(x, 2**20)
    zeros = sp.csr_array((np.zeros(120), np.full(120, 2**20 - 1), np.arange(121)), shape=wide.shape)
    stored = sp.csr_array(sp.vstack([wide, zeros]))
    y = np.append(y, y)
    assert np.unique(stored.indices).size == 41
    for form in (sp.csr_array(sp.vstack([wide, wide])), stored):
        model = SparseMLPClassifier(**SMALL, edges_per_feature=4).fit(form, y)
        first = model.model_.parameters()[model._entrances[0]]
        ids, counts = first.fan_out()
        np.testing.assert_array_equal(ids, np.unique(wide.indices))
        assert set(counts) == {4}


def test_every_feature_is_connected_to_different_neurons():
    x, y = problem()
    weights = SparseMLPClassifier(**SMALL, edges_per_feature=5).fit(x, y).model_[1].weights
    assert weights.nnz == 5 * 40
    assert (np.diff(weights.targets.reshape(40, 5), axis=1) > 0).all()
    assert len(set(map(tuple, weights.targets.reshape(40, 5)))) > 30


@pytest.mark.parametrize("kind", KINDS)
def test_memory_goes_with_the_entries_not_with_the_columns(kind):
    def peak(features):
        rng = np.random.default_rng(0)
        columns = rng.integers(features, size=2000 * 20)
        x = sp.csr_array(
            (np.ones(columns.size, np.float32), columns, np.arange(2001) * 20), shape=(2000, features)
        )
        y = rng.integers(2, size=2000)
        model = kind(32, edges_per_feature=4, max_iter=1, random_state=0)
        outputs(model.fit(x[:100], y[:100]), x[:100])  # compiled, and kept
        return peak_while(lambda: outputs(model.fit(x, y), x))[0]

    narrow, wide = peak(2**20), peak(2**60)
    assert narrow < 2000 * 2**20 * 4 / 100
    assert wide < 1.1 * narrow


# -- With the rest of scikit-learn ---------------------------------------------------------------------------

TEXTS = [
    "warm sun today",
    "cold ice now",
    "warm beach",
    "cold wind again",
    "sun and beach",
    "ice and wind",
] * 6
NAMES = np.array(["summer", "winter"] * 18)


@pytest.mark.parametrize("vectorizer", [HashingVectorizer(), TfidfVectorizer(dtype=np.float32)])
def test_pipeline_of_text(vectorizer):
    model = make_pipeline(vectorizer, SparseMLPClassifier(16, random_state=0)).fit(TEXTS, NAMES)
    assert model.score(TEXTS, NAMES) == 1.0
    assert model.predict(["beach today"])[0] == "summer"


def test_grid_search_over_a_pipeline():
    model = make_pipeline(HashingVectorizer(n_features=2**12), SparseMLPClassifier(**SMALL))
    grid = {"sparsemlpclassifier__edges_per_feature": [2, 8], "sparsemlpclassifier__skip": [True, False]}
    search = GridSearchCV(model, grid, cv=2).fit(TEXTS, NAMES)
    assert search.predict(TEXTS[:2]).tolist() == ["summer", "winter"]


def test_calibration():
    x, y = problem()
    model = CalibratedClassifierCV(SparseMLPClassifier(**SMALL), cv=2).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_pickle_and_copies_give_the_same_and_train_on_alike(kind):
    x, y = problem()
    model = kind(**SMALL, edges_per_feature=4, dropout=0.2, rewiring=topology.set_).fit(x, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(outputs(other, x), outputs(model, x))
        on, too = copy.deepcopy(model).partial_fit(x, y), other.partial_fit(x, y)
        np.testing.assert_array_equal(outputs(on, x), outputs(too, x))


def test_clone_has_learnt_nothing():
    x, y = problem()
    model = clone(SparseMLPClassifier(**SMALL, rewiring=topology.set_()).fit(x, y))
    with pytest.raises(NotFittedError):
        model.predict(x)


def test_feature_names():
    pandas = pytest.importorskip("pandas")
    x, y = problem()
    frame = pandas.DataFrame(x.toarray(), columns=[f"f{i}" for i in range(40)])
    assert SparseMLPClassifier(**SMALL).fit(frame, y).feature_names_in_[1] == "f1"


def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import gbnn.interop.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingError: gbnn.interop.sklearn: expected scikit-learn (pip install" in done.stderr


# -- What it can learn ---------------------------------------------------------------------------------------


def pairs(rows, seed):
    """Rows of binary features whose class is whether the two of the first twelve that occur are alike."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(6, size=rows), rng.integers(6, size=rows)
    noise = 12 + rng.integers(2000, size=(rows, 3))
    columns = np.column_stack([a, 6 + b, noise])
    x = sp.csr_matrix(  # of 32-bit indices, which LinearSVC asks for
        (np.ones(5 * rows, np.float32), (np.arange(rows).repeat(5), columns.ravel())), shape=(rows, 2012)
    )
    return x, (a + b) % 2


def test_it_learns_interactions_that_no_linear_model_can():
    (x, y), (xt, yt) = pairs(2000, 0), pairs(500, 1)
    assert LinearSVC(random_state=0).fit(x, y).score(xt, yt) < 0.65
    model = SparseMLPClassifier(64, max_iter=12, learning_rate_init=0.02, random_state=0)
    assert model.fit(x, y).score(xt, yt) > 0.95


def test_regression_of_interactions():
    (x, y), (xt, yt) = pairs(2000, 0), pairs(500, 1)
    model = SparseMLPRegressor(64, max_iter=12, learning_rate_init=0.02, dropout=0, random_state=0)
    model.fit(x, 100 * y + 7)
    assert model.score(xt, 100 * yt + 7) > 0.8


@pytest.mark.parametrize("hidden", [(), 16, (16, 8)])
@pytest.mark.parametrize("skip", [True, False])
def test_hidden_layers_and_skip(hidden, skip):
    x, y = problem()
    model = SparseMLPClassifier(**SMALL | {"hidden_layer_sizes": hidden, "max_iter": 80, "skip": skip}).fit(
        x, y
    )
    assert model.score(x, y) > 0.85
    assert model.n_layers_ == 2 + np.size(hidden)
    assert model.n_outputs_ == 1


def test_rewiring_moves_edges_and_keeps_their_number():
    x, y = problem()
    make = lambda **more: SparseMLPClassifier(**SMALL, edges_per_feature=4, **more).fit(x, y)  # noqa: E731
    still, moved = make(), make(rewiring=topology.set_)
    names = moved._entrances
    still, moved = (model.model_.parameters()[names[0]] for model in (still, moved))
    assert still.nnz == moved.nnz
    assert not np.array_equal(still.targets, moved.targets)


def test_kwinners():
    x, y = problem()
    from gbnn.layers import KWinners

    model = SparseMLPClassifier(**SMALL | {"max_iter": 30}, activation=lambda: KWinners(4)).fit(x, y)
    assert model.score(x, y) > 0.9


# -- partial_fit, warm_start ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_later_batches_get_edges_and_old_ones_keep_theirs(kind):
    x, y = problem()
    wide = widened(x, 2**50)
    early = sp.csr_array(np.where(np.arange(40) < 20, x.toarray(), 0))
    early = widened(early, 2**50)
    model = kind(**SMALL, edges_per_feature=4)
    options = {"classes": [0, 1]} if kind is SparseMLPClassifier else {}
    model.partial_fit(early, y, **options)
    name = model._entrances[0]
    weights = model.model_.parameters()[name]
    before, slots = weights.to_coo(), model._state.slots[name]["momentum"].copy()
    outputs_before = outputs(model, early)
    assert weights.nnz == 4 * np.unique(early.indices).size
    from gbnn.interop.sklearn.network import grow
    from gbnn.interop.sklearn.options import checked

    grow(
        checked(model).plan, model.model_, model._entrances, np.unique(wide.indices), model._state, model._rng
    )
    assert weights.nnz == 4 * 40
    at = weights.edges.find(*before[:2])
    np.testing.assert_array_equal(weights.values[at], before[2])
    np.testing.assert_array_equal(model._state.slots[name]["momentum"][at], slots)
    assert (at >= 0).all()
    np.testing.assert_allclose(outputs(model, early), outputs_before)
    for _ in range(40):
        model.partial_fit(wide, y)
    if kind is SparseMLPClassifier:
        assert model.score(wide, y) > 0.9
    assert model.n_iter_ == len(model.loss_curve_) == 41
    assert model.t_ == 41 * 120


def test_features_never_seen_change_nothing():
    x, y = problem()
    wide = sp.csr_array((x.data, x.indices, x.indptr), shape=(120, 2**40))
    model = SparseMLPClassifier(**SMALL, edges_per_feature=4).fit(wide, y)
    more = wide + sp.csr_array((np.ones(120), np.full(120, 2**39), np.arange(121)), shape=(120, 2**40))
    np.testing.assert_allclose(outputs(model, more), outputs(model, wide))


def test_partial_fit_holds_to_its_classes():
    x, y = problem()
    with pytest.raises(ValueError, match="classes must be passed"):
        SparseMLPClassifier(**SMALL).partial_fit(x, y)
    model = SparseMLPClassifier(**SMALL).partial_fit(x[:5], np.zeros(5, int), classes=[0, 1, 7])
    assert model.partial_fit(x, y).predict_proba(x).shape == (120, 3)
    with pytest.raises(ValueError, match="got 5"):
        model.partial_fit(x, y + 5)
    with pytest.raises(ValueError, match="3 classes of the first call"):
        model.partial_fit(x, y, classes=[0, 1])


def test_warm_start_goes_on():
    x, y = problem()
    model = SparseMLPClassifier(**SMALL, warm_start=True).fit(x, y)
    first, network = model.loss_, model.model_
    model.fit(x, y)
    assert model.model_ is network
    assert model.loss_curve_[0] < first * 1.05
    assert model.t_ == 2 * 3 * 120
    assert model.n_iter_ == 3
    cold = SparseMLPClassifier(**SMALL).fit(x, y)
    assert cold.fit(x, y).t_ == 3 * 120
    with pytest.raises(ValueError, match="2 classes of the first call"):
        model.fit(x, y + 1)


# -- Stopping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_early_stopping_keeps_the_best(kind):
    x, y = problem()
    y = np.random.default_rng(0).permutation(y)  # nothing to learn
    options = SMALL | {
        "max_iter": 60,
        "early_stopping": True,
        "n_iter_no_change": 4,
        "validation_fraction": 0.3,
    }
    model = kind(**options).fit(x, y)
    assert model.n_iter_ < 60
    assert len(model.validation_scores_) == len(model.loss_curve_) == model.n_iter_
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert model.best_loss_ is None
    assert model.t_ == model.n_iter_ * 84
    # The rows held out are found again: the scores of the network that is kept are the best ones.
    again = kind(**options)
    kept = []
    score = again._validation_score
    again._validation_score = lambda y, t, w: kept.append((t, w)) or score(y, t, w)
    again._blocks = lambda rows, real=again._blocks: kept.append(rows) or real(rows)
    again.fit(x, y)
    rows, (targets, weights) = kept[-2], kept[-1]
    final = np.concatenate(list(model._blocks(rows)))
    assert model._validation_score(final, targets, weights) == pytest.approx(model.best_validation_score_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "share"), [(1, 0.1), (2, 0.6), (60, 0.99)])
def test_early_stopping_needs_rows_to_train_on(kind, rows, share):
    x, y = problem()
    model = kind(**SMALL, early_stopping=True, validation_fraction=share)
    with pytest.raises(ArgumentError, match=f"early_stopping, validation_fraction.* n_samples = {rows} of"):
        model.fit(x[:rows], y[:rows])


def test_training_ends_when_the_loss_no_longer_falls():
    x, y = problem()
    model = SparseMLPClassifier(**SMALL | {"max_iter": 50}, tol=1e3, n_iter_no_change=3).fit(x, y)
    assert model.n_iter_ == 4
    assert model.best_loss_ == min(model.loss_curve_)
    assert model.validation_scores_ is None


def test_verbose_prints_every_epoch(capsys):
    x, y = problem()
    SparseMLPClassifier(**SMALL, verbose=True).fit(x, y)
    assert capsys.readouterr().out.count("Iteration") == 3


@pytest.mark.parametrize("state", [0, np.random.RandomState(0), None])
def test_random_state(state):
    x, y = problem()
    SparseMLPClassifier(**SMALL | {"random_state": state}).fit(x, y)


def test_same_random_state_same_bits_and_another_another():
    x, y = problem()
    one, two, other = (SparseMLPClassifier(**SMALL | {"random_state": s}).fit(x, y) for s in (1, 1, 2))
    np.testing.assert_array_equal(outputs(one, x), outputs(two, x))
    assert not np.allclose(outputs(one, x), outputs(other, x))


# -- Regression ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_the_unit_of_y_does_not_matter(loss):
    x, y = problem()
    one = SparseMLPRegressor(**SMALL, loss=loss).fit(x, y).predict(x)
    other = SparseMLPRegressor(**SMALL, loss=loss).fit(x, 1e6 * y - 1e7).predict(x)
    np.testing.assert_allclose((other + 1e7) / 1e6, one, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_x_does_not_matter(kind):
    x, y = problem()
    one = outputs(kind(**SMALL).fit(x, y), x)
    np.testing.assert_allclose(outputs(kind(**SMALL).fit(1024 * x, y), 1024 * x), one, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_unit_of_x_may_be_near_the_ends_of_the_dtype(dtype):
    x, y = problem(dtype=dtype)
    low, high = np.finfo(dtype).minexp, np.finfo(dtype).maxexp
    one = outputs(SparseMLPClassifier(**SMALL).fit(x, y), x)
    for form in (x, x.toarray()):
        for power in (low + 20, high - 10):
            far = form * dtype(2.0**power)
            with np.errstate(all="raise"):
                found = outputs(SparseMLPClassifier(**SMALL).fit(far, y), far)
            np.testing.assert_allclose(found, one, rtol=1e-3, atol=1e-4)
        with pytest.raises(ArgumentError, match=f"X: expected rows whose length.* in {dtype.__name__}"):
            SparseMLPClassifier(**SMALL).fit(form * dtype(np.finfo(dtype).smallest_subnormal * 4), y)
    longest = np.full((120, 40), np.finfo(np.float64).max)
    with pytest.raises(ArgumentError, match="X: expected rows whose length"):
        SparseMLPClassifier(**SMALL).fit(longest, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_to_predict_must_fit_in_the_dtype(dtype):
    x, y = problem(dtype=dtype)
    y = y * float(np.finfo(dtype).max)
    for factor, shape in ((1, (120,)), (-0.5, (120, 1)), (0.01, (120,))):
        with pytest.raises(ArgumentError, match=f"y: expected numbers whose spread fits in {dtype.__name__}"):
            SparseMLPRegressor(**SMALL).fit(x, (y * factor).reshape(shape).squeeze())
    with pytest.raises(ArgumentError, match="y: expected numbers whose spread fits"):
        SparseMLPRegressor(**SMALL).fit(x, y / np.finfo(dtype).max * float(np.finfo(dtype).tiny) / 8)
    large = y * 2.0**-12
    both = np.column_stack([large, large / large.max()])
    model = SparseMLPRegressor(**SMALL).fit(x, both)
    with np.errstate(all="raise"):
        found = model.predict(x)
    assert np.isfinite(found).all()
    assert model._deviation[1] == pytest.approx(both[:, 1].std())
    with pytest.raises(ArgumentError, match="y: expected numbers that fit"):
        SparseMLPRegressor(**SMALL).partial_fit(x, large / large.max()).partial_fit(x, large)


def test_huber_bears_outliers():
    x, y = problem(400)
    bad = y.astype(float)
    bad[::20] = 1000
    options = SMALL | {"max_iter": 40}
    errors = [
        np.median(np.abs(SparseMLPRegressor(**options, loss=loss).fit(x, bad).predict(x) - y))
        for loss in ("squared_error", "huber")
    ]
    assert errors[1] < 0.7 * errors[0]


def test_several_outputs():
    x, y = problem()
    both = np.column_stack([y, 1000 - 5 * y, np.full(120, 3.0)])
    model = SparseMLPRegressor(**SMALL | {"max_iter": 40}).fit(x, both)
    found = model.predict(x)
    assert found.shape == (120, 3)
    assert model.n_outputs_ == 3
    np.testing.assert_allclose(found[:, 1], 1000 - 5 * found[:, 0], atol=2)
    np.testing.assert_allclose(found[:, 2], 3, atol=1)


# -- Bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_layer_sizes", 0),
        ("hidden_layer_sizes", "12"),
        ("hidden_layer_sizes", 1.5),
        ("hidden_layer_sizes", 2**40),
        ("verbose", "x"),
        ("verbose", -1),
        ("verbose", 1.0),
        ("edges_per_feature", 0),
        ("edges_per_feature", "all"),
        ("activation", "nothing"),
        ("activation", 3),
        ("activation", dict),
        ("skip", "yes"),
        ("dropout", 1.0),
        ("input_dropout", -0.1),
        ("learning_rate_init", 0.0),
        ("batch_size", 0),
        ("max_iter", 0),
        ("alpha", -1),
        ("rewiring", 5),
        ("rewiring", topology.Rewiring),
        ("rewiring", dict),
        ("early_stopping", 1),
        ("validation_fraction", 0.0),
        ("n_iter_no_change", 0),
        ("tol", -1.0),
        ("shuffle", None),
        ("warm_start", 3),
        ("label_smoothing", 1.0),
        ("class_weight", "equal"),
        ("class_weight", 3),
        ("class_weight", {9: 1.0}),
        ("class_weight", {0: -1.0}),
        ("loss", "hinge"),
        ("loss", None),
    ],
)
def test_bad_parameters_are_named_when_fitting(name, value):
    x, y = problem()
    kind = SparseMLPRegressor if name == "loss" else SparseMLPClassifier
    model = kind(**SMALL | {"edges_per_feature": 4, name: value})
    with pytest.raises((GbnnError, TypeError), match=name.split("_")[0]):
        model.fit(x, y)
    assert not hasattr(model, "model_")


def test_bad_data():
    x, y = problem()
    model = SparseMLPClassifier(**SMALL).fit(x, y)
    broken = x.copy()
    broken.data[3] = np.nan
    for call in (lambda: model.predict(broken), lambda: SparseMLPClassifier(**SMALL).fit(broken, y)):
        with pytest.raises(ValueError, match="NaN"):
            call()
    with pytest.raises(ValueError, match="39 features"):
        model.predict(x[:, :39])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(x, y[:-1])
    with pytest.raises(ValueError, match="only zeros"):
        SparseMLPClassifier(**SMALL, class_weight={0: 0, 1: 0}).fit(x, y)
    for kind in KINDS:
        with pytest.raises(
            ArgumentError, match="sample_weight: expected weights of rows whose sum is finite"
        ):
            kind(**SMALL).fit(x, y, sample_weight=np.full(120, 1e308))
        assert np.isfinite(kind(**SMALL).fit(x, y, sample_weight=np.full(120, 1e306)).loss_)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(x, y, sample_weight=np.full(120, -1.0))
    with pytest.warns(DataConversionWarning):
        model.fit(x, y[:, None])
    outside = x.copy()
    outside.indices[0] = 100
    with pytest.raises(ValueError, match="indices"):
        model.predict(outside)
    with pytest.raises(TypeError, match="y: expected an array of numbers"):
        SparseMLPRegressor(**SMALL).fit(x, sp.csr_array(y[:, None]))
    rows = SparseMLPRegressor(**SMALL).fit(x, y)
    with pytest.raises(ValueError, match="1 outputs"):
        rows.partial_fit(x, np.column_stack([y, y]))


def test_rows_without_features():
    x, y = problem()
    x = sp.csr_array(sp.vstack([x, sp.csr_array((2, 40))]))
    y = np.append(y, [0, 1])
    assert SparseMLPClassifier(**SMALL).fit(x, y).predict(x[-1:]).shape == (1,)
    nothing = sp.csr_array((4, 2**50))
    model = SparseMLPClassifier(**SMALL).fit(nothing, [0, 0, 0, 1])
    assert model.predict(nothing).tolist() == [0] * 4
