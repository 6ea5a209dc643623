"""`KWinners`: the k strongest entries of each sample stay active."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import check_bool, check_float, check_int
from gbnn.layers.duty import count_winners, duty_cycles
from gbnn.layers.layer import Activations, Array
from gbnn.layers.selection import Selection
from gbnn.layers.strongest import strongest_of_array, strongest_of_rows
from gbnn.rows import SparseRows

__all__ = ["KWinners"]


class KWinners(Selection):
    """The k largest entries of each sample stay as they are, others become absent. The output is sparse.

    An entry that is 0 is absent and does not compete, so that a batch gives the same dense or sparse: exactly
    k winners a sample, or all of its entries where there are fewer. (A zero that sparse rows store competes.)
    Of equal entries the one with the smaller index wins. Negative entries win where there is nothing better;
    put `Relu` before to rule that out. NaN wins before all numbers, and so shows.

    The gradient passes straight through the winners, and nowhere else.

    With `boost` β, a neuron that has won seldom is helped: the winners are those of ``x exp(β (k/features -
    duty))``, and their values are still those of x. Its duty cycle is the running mean over the last `period`
    samples of how often it won with a positive value. So neurons share the work.

    Source: Ahmad and Scheinkman, "How can we be so dense? The benefits of using highly sparse
    representations", arXiv:1903.11257.

    Parameters
    ----------
    k : int
        Winners a sample.
    boost : float in [0, 50]
        β; with 0 there are no duty cycles to keep.
    period : int
        Samples the duty cycles look back.
    k_inference : int, optional
        Winners outside of training; default k.
    slots : int
        Duty cycles that are kept. Up to that many neurons each has its own; of more (there may be 2**60),
        those that fall together in a hash table of this size share one. Only with a `boost`.
    dense : bool
        Whether y is an array instead.

    Attributes
    ----------
    duty : ndarray of float64, shape (slots,)
    clock : ndarray of float64, shape (2,)
        How often neurons have won of late, see `gbnn.layers.duty`; buffers where there is a `boost`.

    Raises
    ------
    ArgumentError, KindError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> y, pullback = layers.KWinners(2).forward(np.array([[3.0, 1.0, 3.0, 2.0, 3.0]]))
    >>> y
    SparseRows(1 x 5, nnz=2, float64)
    >>> y.columns, y.values
    (array([0, 2]), array([3., 3.]))
    >>> pullback(np.ones((1, 5)))[0].to_dense()
    array([[1., 0., 1., 0., 0.]])
    """

    def __init__(
        self,
        k: int,
        *,
        boost: float = 0.0,
        period: int = 1000,
        k_inference: int | None = None,
        slots: int = 2**17,
        dense: bool = False,
    ) -> None:
        most = 2**31
        self.k = check_int("KWinners k", k, 1, most)
        self.k_inference = None
        if k_inference is not None:
            self.k_inference = check_int("KWinners k_inference", k_inference, 1, most)
        self.boost = check_float("KWinners boost", boost, 0, 50)
        self.period = check_int("KWinners period", period, 1, most)
        self.slots = check_int("KWinners slots", slots, 1, 2**26)
        self.dense = check_bool("KWinners dense", dense)
        self.duty: Array = np.zeros(self.slots if self.boost else 0)
        self.clock: Array = np.array([0.0, 1.0])

    def config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        names = ("k", "boost", "period", "k_inference", "slots", "dense")
        return {name: getattr(self, name) for name in names}

    def own_buffers(self) -> dict[str, Array]:
        """Return `duty` and `clock` where there is a boost."""
        return {"duty": self.duty, "clock": self.clock} if self.boost else {}

    def places(self, x: Array, training: bool) -> tuple[Array, Array, Array]:
        """Return where the winners are; see `Selection.places`."""
        return strongest_of_array(x, self._winners(training), self._factors(None, x.shape[1]))

    def chosen(self, x: SparseRows, training: bool) -> Array:
        """Return whether each active entry wins."""
        return strongest_of_rows(x, self._winners(training), self._factors(x.columns, x.shape[1]))

    def saw(self, y: SparseRows) -> None:
        """Move the duty cycles on by the winners of a batch of training."""
        if self.boost:
            count_winners(self.duty, self.clock, y, self.period)

    def _winners(self, training: bool) -> int:
        return self.k if training or self.k_inference is None else self.k_inference

    def _factors(self, neurons: Array | None, features: int) -> Array | None:
        """Return what multiplies the entries of these neurons (None: all) in the contest."""
        if not self.boost:
            return None
        duty = duty_cycles(self.duty, self.clock, neurons, features)
        factors: Array = np.exp(self.boost * (self.k / max(features, 1) - duty))
        return factors

    def _out(self, y: SparseRows) -> Activations:
        return y.to_dense() if self.dense else y

    def __repr__(self) -> str:
        usual = {"boost": 0.0, "period": 1000, "k_inference": None, "slots": 2**17, "dense": False}
        unusual = [f"{name}={value!r}" for name, value in self.config().items() if value != usual.get(name)]
        return f"KWinners({', '.join(unusual)})"
