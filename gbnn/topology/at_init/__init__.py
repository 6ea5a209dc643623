"""Pruning at initialisation: scores of the edges of a denser sparse model, of which the strongest are kept.

    model = models.mlp([784, 300, 100, 10], density=0.1, allocation="uniform", seed=0)
    scores = at_init.snip(model, [(x, y)], losses.cross_entropy)
    at_init.keep_strongest(model, scores, 2662)  # 1 % of all places

The model that is scored is sparse itself: there is never a dense mask, and the cost is that of a few training
steps. `counts` takes from the scores only how many edges each layer gets, for a fresh random graph.
"""

from gbnn.topology.at_init.gradients import grasp, magnitude, snip
from gbnn.topology.at_init.keep import Scores, counts, keep_strongest
from gbnn.topology.at_init.synflow import synflow

__all__ = ["Scores", "counts", "grasp", "keep_strongest", "magnitude", "snip", "synflow"]
