"""`SparseMLPClassifier`: classes, or labels of which a row may have several."""

# ruff: noqa: N803 (X is what scikit-learn calls samples)

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import unique_labels

from gbnn.errors import ArgumentError
from gbnn.interop.sklearn import labels
from gbnn.interop.sklearn.base import held_out_rows
from gbnn.interop.sklearn.losses import OfRows, sigmoid, softmax
from gbnn.interop.sklearn.predictions import ClassPredictions
from gbnn.layers import Layer
from gbnn.topology import Rewirer

__all__ = ["SparseMLPClassifier"]

Array = np.ndarray[Any, Any]


class SparseMLPClassifier(ClassifierMixin, ClassPredictions):  # type: ignore[misc]
    """A sparse network that classifies, made for data of very many features few of which occur in a row.

    Samples in SciPy CSR are never made dense, in training or prediction. Only features that occur get edges,
    so X may have 2**60 columns: time and memory go with the entries. Two classes, more, or a matrix Y of
    zeros and ones, dense or sparse, of labels of which a row may have several.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int
        Widths of the hidden layers; ``()`` makes a linear model.
    edges_per_feature : int or "auto"
        Hidden neurons that each feature is connected to, drawn at random. "auto": all of them where a layer
        of 2**23 edges has room for that; else as many as fit, but at least 16. More are better where memory
        allows.
    activation : str or callable
        Of hidden neurons: a name, such as "relu", or a function that makes a layer.
    skip : bool
        Whether features have edges to the outputs, too, so that a linear model is a part of the network.
    dropout, input_dropout : float in [0, 1), or "auto"
        Share of hidden neurons, and of the features of a row, that are left out at random in training.
        "auto": a half where more features occur than a quarter of the rows; of features only where a row has
        many (up to a half at 120, none at 20), as of n-grams of text, and of hidden neurons only
        where a feature reaches a quarter of them. Else none.
    label_smoothing : float in [0, 1)
        Share of each target spread evenly over all classes (Szegedy et al., CVPR 2016). Not for labels.
    class_weight : dict, "balanced" or None
        Class -> weight of its rows; "balanced" makes all classes weigh the same. Not for labels.
    learning_rate_init : float
        Of AdamW. In `fit` it falls to 0 in a line over `max_iter` epochs, in `partial_fit` it stays.
    batch_size : int or "auto"
        "auto": about fifty batches an epoch, of 16 to 64 rows; of 128 in data of 32,768 rows or more.
    max_iter : int or "auto"
        Epochs of `fit`, at most. "auto": as many as make 1,200 batches, from 4 to 200; where more features
        occur than a quarter of the rows, 3 to 10, fewer the more rows.
    alpha : float
        Weight decay, decoupled; biases have none.
    rewiring : None, Rewirer or callable
        Moves edges while training: such as ``topology.set_()``, or the recipe `topology.set_` itself.
    early_stopping : bool
        Whether `fit` holds out rows, and keeps the network that predicts them best: by accuracy, of labels by
        micro-F1. `partial_fit` never does.
    validation_fraction : float
        Share of the rows held out; of each class the same where there are two rows or more of each.
    n_iter_no_change, tol : int, float
        Training ends after so many epochs whose loss (or validation score) is not better by `tol`.
    shuffle : bool
        Whether each epoch takes the rows in an order of its own.
    random_state : int, RandomState or None
    warm_start : bool
        Whether `fit` goes on from what an earlier `fit` has learnt; features new since then get edges.
    verbose : bool
        Print the loss after each epoch.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Of labels: their column numbers.
    model_ : Layer
        The network; it takes X as it is. `gbnn.save` saves it (to load, pass ``known=[Scale]``).
    n_features_in_, feature_names_in_, n_iter_, n_layers_, n_outputs_, t_
        As in scikit-learn's `MLPClassifier`.
    out_activation_ : str
        "softmax", or "logistic" for two classes or for labels.
    loss_, best_loss_, loss_curve_, validation_scores_, best_validation_score_
        As in scikit-learn's `MLPClassifier`.

    Notes
    -----
    Rows are divided by the root mean square of their lengths, so that learning rates do not depend on the
    unit of X. Values and gradients are of the dtype of X: float32 X takes half the memory of float64.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from gbnn.interop.sklearn import SparseMLPClassifier
    >>> texts = ["a warm day", "a cold night", "warm sun", "cold ice"] * 10
    >>> model = make_pipeline(HashingVectorizer(), SparseMLPClassifier(random_state=0))
    >>> model.fit(texts, ["warm", "cold", "warm", "cold"] * 10).predict(["warm night of sun"])
    array(['warm'], dtype='<U4')
    """

    def __init__(
        self,
        hidden_layer_sizes: int | Iterable[int] = (256,),
        *,
        edges_per_feature: int | str = "auto",
        activation: str | Callable[[], Layer] = "relu",
        skip: bool = False,
        dropout: float | str = "auto",
        input_dropout: float | str = "auto",
        label_smoothing: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        learning_rate_init: float = 5e-3,
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        alpha: float = 0.0,
        rewiring: Rewirer | Callable[[], Rewirer] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.edges_per_feature = edges_per_feature
        self.activation = activation
        self.skip = skip
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.label_smoothing = label_smoothing
        self.class_weight = class_weight
        self.learning_rate_init = learning_rate_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.alpha = alpha
        self.rewiring = rewiring
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    # -- Training --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPClassifier:
        """Train the network.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), or array or SciPy sparse, shape (n_samples, n_labels)
        sample_weight : array-like, shape (n_samples,), optional
            Not negative; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        self._train(X, y, sample_weight, partial=False)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> SparseMLPClassifier:
        """Train for one epoch on these rows; features not seen before get their edges first.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like, optional
            All classes there will be: needed at the first call, unless y is a matrix of labels.

        Returns
        -------
        self
        """
        self._train(X, y, sample_weight, partial=True, classes=classes)
        return self

    def _read_targets(
        self, y: Any, weights: Array | None, fresh: bool, partial: bool, classes: Any, dtype: Any
    ) -> Any:
        many, y = labels.read(y)
        if many:
            found: Array = np.arange(y.shape[1])
        elif partial:
            if classes is None and fresh:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            found = self.classes_ if classes is None else unique_labels(classes)
        else:
            found = np.unique(y)
        if fresh:
            self.classes_ = found
            self._many = many
            self.out_activation_ = "logistic" if many or found.size == 2 else "softmax"
        elif many != self._many or not np.array_equal(found, self.classes_):
            wanted = f"the {self.classes_.size} {'labels' if self._many else 'classes'} of the first call"
            raise ArgumentError("y", wanted, found)
        if many:
            self._label_type, self._label_dtype = type(y), y.dtype
            return y
        return labels.numbered(y, self.classes_)

    def _row_weights(self, targets: Any, weights: Array | None, partial: bool) -> Array | None:
        if self.class_weight is None:
            return weights
        if self._many:
            raise ArgumentError("class_weight", "None for labels", self.class_weight)
        if partial and isinstance(self.class_weight, str):
            wanted = "a dict or None with partial_fit, which knows only a part of the rows"
            raise ArgumentError("class_weight", wanted, self.class_weight)
        each = labels.class_weights(self.class_weight, self.classes_, targets, weights)[targets]
        return each if weights is None else np.asarray(each * weights)

    def _row_loss(self, smoothing: float) -> OfRows:
        if self.out_activation_ == "softmax":
            return softmax(smoothing)
        return sigmoid(0.0 if self._many else smoothing)

    def _first_bias(self, targets: Any, weights: Array) -> Array:
        """Return what the outputs are without features: the classes' own shares."""
        total = weights.sum()
        if self.out_activation_ == "softmax":
            counts = np.bincount(targets, weights, self.classes_.size)
            bias: Array = np.log((counts + 0.5) / (total + 0.5 * counts.size))
            return bias
        counts = np.atleast_1d(np.asarray(targets.T @ weights, dtype=np.float64))
        share = (counts + 0.5) / (total + 1)
        return np.asarray(np.log(share / (1 - share)))

    def _split(self, targets: Any, share: float, seed: int) -> tuple[Array, Array]:
        every = np.arange(targets.shape[0])
        count = held_out_rows(every.size, share)
        stratify = None
        if not self._many:
            present = np.unique(targets, return_counts=True)[1]
            if present.min() >= 2 and min(count, every.size - count) >= present.size:
                stratify = targets
        used, kept = train_test_split(every, test_size=count, random_state=seed, stratify=stratify)
        return np.sort(used), np.sort(kept)

    def _validation_score(self, outputs: Array, targets: Any, weights: Array | None) -> float:
        if self._many:
            found = outputs > 0
            said = sp.csr_array(found) if sp.issparse(targets) else found.astype(int)
            truth = targets if sp.issparse(targets) else targets.astype(int)
            score = f1_score(truth, said, average="micro", sample_weight=weights, zero_division=0.0)
        else:
            score = accuracy_score(targets, self._chosen(outputs), sample_weight=weights)
        return float(score)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: a row may have several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
