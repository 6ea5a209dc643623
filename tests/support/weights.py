"""Layers drawn by hypothesis, as dictionaries from edge to value, and the `Weights` that must equal them."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from gbnn.weights import Weights

few = settings(deadline=None, max_examples=40)
BIG = 2**60
shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
huge_shapes = st.sampled_from([(BIG, BIG), (1, BIG), (BIG, 1), (2**31, 2**32), (10**9, 10**9)])
numbers = st.floats(-1000, 1000, width=32)


@st.composite
def models(draw, shapes=shapes):
    """A shape and a dictionary from edge to value."""
    shape = draw(shapes)
    place = st.tuples(*(st.integers(0, n - 1) | st.sampled_from([0, n - 1]) for n in shape))
    return shape, draw(st.dictionaries(place, numbers, max_size=12))


def build(shape, model, dtype=np.float32):
    sources, targets = [i for i, _ in model], [j for _, j in model]
    return Weights.from_coo(sources, targets, list(model.values()), shape, dtype=dtype)


def model_of(weights):
    return dict(
        zip(
            zip(weights.sources.tolist(), weights.targets.tolist(), strict=True),
            weights.values.tolist(),
            strict=True,
        )
    )


def dense_of(shape, model, dtype=np.float32):
    dense = np.zeros(shape, dtype=dtype)
    for place, value in model.items():
        dense[place] = value
    return dense


def some(dtype=np.float32):
    """3 x 4: (0, 1) 1, (2, 0) 2, (2, 3) 3."""
    return Weights.from_coo([2, 0, 2], [3, 1, 0], [3.0, 1.0, 2.0], (3, 4), dtype=dtype)


def equal(a, b):
    assert (a.shape, a.dtype, model_of(a)) == (b.shape, b.dtype, model_of(b))
    np.testing.assert_array_equal(a.sources, b.sources)
    np.testing.assert_array_equal(a.targets, b.targets)


def views_fit(weights):
    """Both views hold the edges and the values of the moment."""
    model = model_of(weights)
    for view, turned in ((weights.by_target, False), (weights.by_source, True)):
        rows, columns, values = (part.tolist() for part in view.to_coo())
        places = zip(columns, rows, strict=True) if turned else zip(rows, columns, strict=True)
        assert dict(zip(places, values, strict=True)) == model
        assert view.shape == (weights.shape[::-1] if turned else weights.shape)
