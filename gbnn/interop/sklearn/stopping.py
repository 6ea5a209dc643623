"""`Progress`: when to stop training, and the best weights so far."""

from __future__ import annotations

from typing import Any

from gbnn.interop.sklearn.options import Options
from gbnn.layers import Layer
from gbnn.training import State, snapshot

__all__ = ["Progress"]


class Progress:
    """Watch the loss, or the score of rows held out, after every epoch.

    Training ends once neither has become better by `tol` in `n_iter_no_change` epochs in a row. With rows
    held out, the network of the best score is what remains.
    """

    def __init__(self, options: Options, model: Layer, state: State, *, watch: bool) -> None:
        self.options, self.model, self.state, self.watch = options, model, state, watch
        self.scores: list[float] = []
        self._epochs = 0
        self._waited = 0
        self._best = float("-inf")
        self._highest = float("-inf")
        self._kept: Any = None

    def ends(self, loss: float, score: float | None) -> bool:
        """Take note of an epoch; return whether it is to be the last."""
        self._epochs += 1
        now = -loss if score is None else score
        if self.options.verbose:
            said = "" if score is None else f", validation score = {score:.6f}"
            print(f"Iteration {self._epochs}, loss = {loss:.8f}{said}")
        if not self.watch:
            return False
        if score is not None:
            self.scores.append(score)
            if score > self._highest:
                self._highest, self._kept = score, snapshot.take(self.model)
        better = now > self._best + self.options.tol
        self._waited = 0 if better else self._waited + 1
        self._best = max(self._best, now)
        return self._waited >= self.options.n_iter_no_change

    def finish(self) -> None:
        """Go back to the best."""
        if self._kept is not None:
            snapshot.go_back(self.model, self._kept, self.state.slots, self.state.memory)
