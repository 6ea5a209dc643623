"""`Sampled`: a loss over candidates, where labels are too many to score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_array, check_bool, check_function, check_int
from gbnn.layers.scores import Scores
from gbnn.losses.classification import CrossEntropy
from gbnn.losses.loss import Derivative, Loss, Pullback
from gbnn.losses.negatives import Choose, Negatives, positives, uniform
from gbnn.rows import SparseRows

__all__ = ["Sampled"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sampled(Loss):
    """Another loss over the candidates of a batch alone: the true labels of each row, and drawn negatives.

    It trains a model that ends in `layers.ManyLabels`, at the cost of the edges into the candidates. Outputs
    that are computed already (an array, sparse rows) go to the base loss as they are.

    Where the chance π of each negative to be drawn is known, it stands for 1/π labels: log π is subtracted
    from its score in a softmax, the sum over labels of other losses is weighted by 1/π. So the partition
    function, or the loss, is right on average: the sampled softmax of Jean, Cho, Memisevic and Bengio, "On
    using very large target vocabulary for neural machine translation", ACL 2015 (after Bengio and Senécal,
    2003). Where the graph draws them, π is not known, and there is no correction.

    Parameters
    ----------
    base : Loss
        `CrossEntropy`, `Hinge`, `BinaryCrossEntropy` or `MultiLabelCrossEntropy`, with any options.
    negatives : callable or sequence of callable
        From `losses.negatives`, or ``(rng, scores, target) -> Negatives`` of your own; several are united.
    seed : int or numpy.random.Generator
        Where they are drawn from. From a Generator one number is drawn to seed the loss's own.
    corrected : bool
        Whether to correct for chances. For a softmax it pays; for sums over labels the weights 1/π make the
        gradients of the few negatives so uneven that training without is often the faster.
    state : dict, optional
        The state of the generator, as `config` gives it, to go on where another left off.

    Attributes
    ----------
    generator : numpy.random.Generator
        The one thing of it that changes, at each call.

    Notes
    -----
    `metrics` and `predict` are those of the base loss, over all labels.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import losses
    >>> from gbnn.layers.head import ManyLabels
    >>> head = ManyLabels.random(16, 10**6, nnz=10**6, seed=0)
    >>> scores, back = head.forward(np.ones((2, 16)), training=True)
    >>> loss = losses.Sampled(losses.cross_entropy, losses.negatives.uniform(100), seed=0)
    >>> value, pullback = loss(scores, [3, 999_999])
    >>> pullback()
    SparseRows(2 x 1000000, nnz=202, float32)
    >>> _, gradients = back(pullback())
    >>> gradients["bias"].positions.size
    102
    """

    name: ClassVar[str] = "sampled"
    base: Loss = field(default_factory=CrossEntropy)
    negatives: Choose | Sequence[Choose] = field(default_factory=lambda: uniform(1000))
    seed: int | np.random.Generator = 0
    corrected: bool = True
    state: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.base, Loss) or isinstance(self.base, Sampled):
            raise KindError("base", "a gbnn loss, such as losses.cross_entropy", repr(self.base))
        if type(self.base)._compute_rows is Loss._compute_rows or self.base.name in ("mse", "huber"):
            raise ArgumentError("base", "a loss of labels", self.base.name)
        choices = self.negatives if isinstance(self.negatives, Sequence) else (self.negatives,)
        if not choices:
            raise ArgumentError("negatives", "at least one function that draws them", "none")
        for choose in choices:
            check_function("negatives", choose)
        seed = self.seed
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63))
        else:
            seed = check_int("seed", seed, 0)
        # PCG64 by name, not default_rng: a saved state must fit when NumPy changes its default.
        generator = np.random.Generator(np.random.PCG64(seed))
        if self.state is not None:
            try:
                generator.bit_generator.state = self.state
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
                raise ArgumentError("state", "the state of a PCG64 generator", repr(self.state)) from None
        for name, value in (
            ("negatives", tuple(choices)),
            ("seed", seed),
            ("corrected", check_bool("corrected", self.corrected)),
            ("state", None),
            ("generator", generator),
        ):
            object.__setattr__(self, name, value)

    def __call__(self, y: Any, target: Any) -> tuple[float, Pullback]:
        """Compute the loss of a batch over its candidates; see `Loss.__call__`.

        Parameters
        ----------
        y : Scores, shape (batch, labels)
            Or computed outputs, for which this is the base loss.
        target : array_like or SciPy CSR
            As of the base loss.

        Returns
        -------
        value : float
        pullback : callable
            ``pullback()`` is d value / d y at the candidates: SparseRows.
        """
        if not isinstance(y, Scores):
            return self.base(y, target)
        checked = self._check(target, *y.shape)
        assert isinstance(self.negatives, tuple)  # noqa: S101  (for the type checker)
        drawn = [choose(self.generator, y, checked) for choose in self.negatives]
        negatives = _united(drawn, y.shape[1])
        starts, columns, chance = _candidates(negatives, *positives(checked), len(y))
        rows = y.at((starts, columns))
        chance = chance if self.corrected else None
        with np.errstate(all="ignore"):
            value, derivative = self.base._compute_rows(rows, checked, chance)

        def pullback() -> SparseRows:
            with np.errstate(all="ignore"):
                return rows.with_values(derivative())

        return value, pullback

    def predict(self, y: Any) -> Any:
        """Return what the outputs say: as the base loss."""
        return self.base.predict(y)

    def probabilities(self, y: Any) -> Any:
        """Return the probability of each output: as the base loss."""
        return self.base.probabilities(y)

    def metrics(self, y: Any, target: Any) -> dict[str, float]:
        """Return how good the outputs are: as the base loss, of `Scores` over all labels."""
        return self.base.metrics(y, target)

    def config(self) -> dict[str, Any]:
        """Return the options: ``Sampled(**loss.config())`` draws as this one will.

        They are values of Python, not of JSON: a loss, functions, the state of the generator.
        """
        names = "base", "negatives", "seed", "corrected"
        return {name: getattr(self, name) for name in names} | {"state": self.generator.bit_generator.state}

    def _check(self, target: Any, rows: int | None, outputs: int | None) -> Any:
        return self.base._check(target, rows, outputs)

    def _compute(self, y: Array, target: Any) -> tuple[float, Derivative]:
        return self.base._compute(y, target)

    def _predict(self, y: Array) -> Array:
        return self.base._predict(y)

    def _metrics(self, y: Array, target: Any) -> dict[str, float]:
        return self.base._metrics(y, target)


def _united(drawn: Sequence[Any], outputs: int) -> Negatives:
    """Return all that were drawn, each once; chances, where all are known, are those to be drawn by any."""
    for one in drawn:
        if not isinstance(one, Negatives):
            raise KindError("negatives", "functions that return losses.negatives.Negatives", repr(one))
        labels = check_array("negatives, labels", one.labels, "iu", "integer labels")
        ascend = labels.ndim == 1 and (labels[1:] > labels[:-1]).all()
        if not ascend or (labels.size and (labels[0] < 0 or labels[-1] >= outputs)):
            wanted = f"labels from 0 to {outputs - 1}, ascending, none twice"
            raise ArgumentError("negatives", wanted, labels)
    if len(drawn) == 1:
        united: Negatives = drawn[0]
        return united
    labels = np.unique(np.concatenate([one.labels for one in drawn]))
    chances = [one.chance for one in drawn]

    def chance(some: Array) -> Array:
        missed: Array = np.prod([1.0 - known(some) for known in chances], axis=0)
        return 1.0 - missed

    return Negatives(labels, None if None in chances else chance)


def _candidates(
    negatives: Negatives, rows: Array, labels: Array, batch: int
) -> tuple[Array, Array, Array | None]:
    """Return the candidates of each row, its true labels and the negatives, as starts and columns ascending.

    And the chance of each to be there, 1 of true labels, where it is known. Nothing is sorted: true labels
    come by row and ascend, and are put between the negatives.
    """
    shared = negatives.labels
    place = np.searchsorted(shared, labels)
    drawn = np.zeros(labels.size, dtype=bool)
    inside = place < shared.size
    drawn[inside] = shared[place[inside]] == labels[inside]
    added = np.append(0, np.cumsum(np.bincount(rows[~drawn], minlength=batch)))
    starts = added + shared.size * np.arange(batch + 1)
    before = np.cumsum(~drawn) - ~drawn  # true labels put in before this one, in all rows
    at = starts[rows] + place + before - added[rows]
    own = np.zeros(starts[-1], dtype=bool)
    own[at[~drawn]] = True
    columns = np.empty(starts[-1], dtype=np.int64)
    columns[own] = labels[~drawn]
    columns[~own] = np.tile(shared, batch)
    if negatives.chance is None:
        return starts, columns, None
    chance = np.empty(starts[-1])
    chance[~own] = np.tile(negatives.chance(shared), batch)
    chance[at] = 1.0
    return starts, columns, chance
