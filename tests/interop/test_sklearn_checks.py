"""scikit-learn's own checks of estimators, for several settings."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from gbnn import topology
from gbnn.interop.sklearn import SparseMLPClassifier, SparseMLPRegressor

SMALL = {"hidden_layer_sizes": 16, "batch_size": 64, "learning_rate_init": 0.03, "max_iter": 40}
SETTINGS = [
    {"dropout": 0, "input_dropout": 0},
    {"edges_per_feature": 2, "skip": True, "rewiring": topology.set_, "dropout": 0, "input_dropout": 0},
    {"hidden_layer_sizes": (), "early_stopping": True, "max_iter": 100},
    {"hidden_layer_sizes": (16, 8), "dropout": 0.2, "input_dropout": 0.1, "alpha": 0.01},
]
DRAWS = "dropout and mini-batches draw at random, so a weight of 2 is not two rows (as for SGDClassifier)"


def expected_failures(estimator):
    """What scikit-learn's own list has for its estimators of this kind, too."""
    if estimator.dropout or estimator.early_stopping:
        return {f"check_sample_weight_equivalence_on_{kind}_data": DRAWS for kind in ("dense", "sparse")}
    return {}


@parametrize_with_checks(
    [kind(**SMALL | s) for kind in (SparseMLPClassifier, SparseMLPRegressor) for s in SETTINGS],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
