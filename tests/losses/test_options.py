"""What every loss is as a value: its name, its options, equality."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from support.losses import DEFAULTS, TABLE, all_losses, case

from gbnn import losses
from gbnn.errors import ArgumentError, GbnnError


@pytest.mark.parametrize("name", DEFAULTS)
def test_named(name):
    assert losses.named(name) is DEFAULTS[name]
    assert DEFAULTS[name].name == name


@pytest.mark.parametrize("name", ["Cross_Entropy", "", None, 3])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ArgumentError) as caught:
        losses.named(name)
    assert all(known in str(caught.value) for known in DEFAULTS)


@all_losses
def test_a_loss_is_a_value_that_a_file_can_record(loss, make):
    recorded = json.loads(json.dumps(loss.config()))
    again = type(losses.named(loss.name))(**recorded)
    for copy in (again, pickle.loads(pickle.dumps(loss)), eval(repr(loss), vars(losses))):
        assert copy == loss
        assert hash(copy) == hash(loss)
        y, target = case(make)
        assert copy(y, target)[0] == loss(y, target)[0]
    with pytest.raises(AttributeError):
        loss.label_smoothing = 0.5


def test_options_tell_losses_apart():
    assert len({repr(loss) for loss, _ in TABLE.values()}) == len({loss for loss, _ in TABLE.values()}) == 13
    assert losses.Huber(1) == losses.Huber(np.float32(1.0))


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: losses.CrossEntropy(label_smoothing=1.0), "label_smoothing"),
        (lambda: losses.CrossEntropy(label_smoothing=-0.1), "label_smoothing"),
        (lambda: losses.CrossEntropy(label_smoothing=np.nan), "label_smoothing"),
        (lambda: losses.CrossEntropy(label_smoothing="0.1"), "label_smoothing"),
        (lambda: losses.CrossEntropy(class_weights=[1.0, -1.0]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[1.0, np.nan]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[0.0, 0.0]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=2.0), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=["a", "b"]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[[1.0], [1.0, 2.0]]), "class_weights"),
        (lambda: losses.CrossEntropy([1.0, 2.0])(np.zeros((1, 3)), [0]), "class_weights"),
        (lambda: losses.CrossEntropy([1.0, 2.0]).check_target([0], outputs=3), "class_weights"),
        (lambda: losses.CrossEntropy([1.0, 2.0]).check_target([0, 2]), "target"),
        (lambda: losses.BinaryCrossEntropy(reduction="mean"), "reduction"),
        (lambda: losses.BinaryCrossEntropy(reduction=None), "reduction"),
        (lambda: losses.MultiLabelCrossEntropy(normalized=1), "normalized"),
        (lambda: losses.Huber(delta=0.0), "delta"),
        (lambda: losses.Huber(delta=np.inf), "delta"),
        (lambda: losses.Huber(delta=None), "delta"),
        (lambda: losses.Hinge(margin=-1), "margin"),
        (lambda: losses.Hinge(margin=True), "margin"),
    ],
)
def test_bad_options_are_refused_by_name(make, argument):
    with pytest.raises(GbnnError) as caught:
        make()
    assert caught.value.where == argument


@pytest.mark.parametrize("loss", [losses.mse, losses.huber, losses.hinge])
def test_other_losses_have_no_probabilities(loss):
    with pytest.raises(ArgumentError, match=f"{loss.name}, which has none"):
        loss.probabilities(np.zeros((2, 2)))
