"""What a classifier says of rows: classes, labels, probabilities, the best few of many."""

# ruff: noqa: N803 (X is what scikit-learn calls samples)

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.errors import check_int
from gbnn.interop.sklearn import labels
from gbnn.interop.sklearn.base import SparseMLP
from gbnn.losses import binary_cross_entropy, cross_entropy

__all__ = ["ClassPredictions"]

Array = np.ndarray[Any, Any]


class ClassPredictions(SparseMLP):
    """The predictions of `SparseMLPClassifier`."""

    classes_: Array
    out_activation_: str
    _many: bool
    _label_type: type
    _label_dtype: Any

    def _chosen(self, outputs: Array) -> Array:
        one = outputs.shape[1] == 1 and self.classes_.size == 2
        return (outputs[:, 0] > 0).astype(np.int64) if one else outputs.argmax(axis=1)

    def decision_function(self, X: Any) -> Array:
        """Return the outputs before softmax or sigmoid.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples, n_classes), or (n_samples,) for two classes
            Above 0 means the second class, or that a row has a label.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 and not self._many else outputs

    def predict(self, X: Any) -> Any:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,), or array or SciPy CSR, shape (n_samples, n_labels)
            Labels come in the form in which they were given; a sparse Y is never made dense.
        """
        rows = self._read(X)
        if not self._many:
            return self.classes_[np.concatenate([self._chosen(y) for y in self._blocks(rows)])]
        if not issubclass(self._label_type, sp.sparray | sp.spmatrix):
            return np.concatenate([(y > 0).astype(self._label_dtype) for y in self._blocks(rows)])
        found = sp.vstack([sp.csr_array(y > 0) for y in self._blocks(rows)], format="csr")
        found = found.astype(self._label_dtype)
        return found if issubclass(self._label_type, sp.sparray) else sp.csr_matrix(found)

    def _probabilities(self, outputs: Array) -> Array:
        if self.out_activation_ == "softmax":
            return np.asarray(cross_entropy.probabilities(outputs))
        ones = binary_cross_entropy.probabilities(outputs)
        return ones if self._many else np.column_stack([1 - ones, ones])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, or of each label.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
        """
        return np.asarray(self._probabilities(self._outputs(X)))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict_top(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """Return the k most probable classes, or labels, of each row, the best first.

        Scores are held for a block of rows at a time.

        Parameters
        ----------
        X : array-like, SciPy sparse, graphblas.Matrix or SparseRows, shape (n_samples, n_features)
        k : int
            From 1 to the number of classes.

        Returns
        -------
        classes : ndarray, shape (n_samples, k)
            Entries of `classes_`; of labels their column numbers.
        probabilities : ndarray, shape (n_samples, k)

        Examples
        --------
        >>> import numpy as np
        >>> from gbnn.interop.sklearn import SparseMLPClassifier
        >>> X = np.eye(3).repeat(20, axis=0); y = np.repeat(["red", "green", "blue"], 20)
        >>> SparseMLPClassifier(random_state=0).fit(X, y).predict_top(X[:1], k=1)[0]
        array([['red']], dtype='<U5')
        """
        rows = self._read(X)
        count = check_int("k", k, 1, self.classes_.size)
        best = [labels.largest(self._probabilities(y), count) for y in self._blocks(rows)]
        ids, scores = (np.concatenate(parts) for parts in zip(*best, strict=True))
        return self.classes_[ids], scores
