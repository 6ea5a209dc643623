"""scikit-learn estimators over sparse networks: `SparseMLPClassifier` and `SparseMLPRegressor`.

They need the extra ``sklearn`` (``pip install graphblas-nn[sklearn]``).
"""

from gbnn.errors import MissingError

try:
    import sklearn  # noqa: F401
except ImportError as error:
    wanted = "scikit-learn (pip install graphblas-nn[sklearn])"
    raise MissingError("gbnn.interop.sklearn", wanted, "none installed") from error

from gbnn.interop.sklearn.classifier import SparseMLPClassifier
from gbnn.interop.sklearn.regressor import SparseMLPRegressor

__all__ = ["SparseMLPClassifier", "SparseMLPRegressor"]
