"""Layers: differentiable functions of a batch, each with named parameters and a pullback."""

from gbnn.layers.activations import (
    Activation,
    Gelu,
    Identity,
    LeakyRelu,
    Relu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
    activation,
)
from gbnn.layers.affine import Affine
from gbnn.layers.chain import Chain, Concatenate, Parallel, Residual
from gbnn.layers.dense import Dense
from gbnn.layers.dropout import Dropout
from gbnn.layers.head import ManyLabels
from gbnn.layers.init import Initializer, glorot, he, normal, uniform, zeros
from gbnn.layers.kwinners import KWinners
from gbnn.layers.layer import Gradients, Layer, Parameter, Pullback, as_activations, as_batch
from gbnn.layers.linear import Linear
from gbnn.layers.normalize import BatchNorm, LayerNorm
from gbnn.layers.reserve import ReserveLinear
from gbnn.layers.scores import Scores
from gbnn.layers.threshold import Threshold

__all__ = [
    "Activation",
    "Affine",
    "BatchNorm",
    "Chain",
    "Concatenate",
    "Dense",
    "Dropout",
    "Gelu",
    "Gradients",
    "Identity",
    "Initializer",
    "KWinners",
    "Layer",
    "LayerNorm",
    "LeakyRelu",
    "Linear",
    "ManyLabels",
    "Parallel",
    "Parameter",
    "Pullback",
    "Relu",
    "ReserveLinear",
    "Residual",
    "Scores",
    "Sigmoid",
    "Silu",
    "Softplus",
    "Tanh",
    "Threshold",
    "activation",
    "as_activations",
    "as_batch",
    "glorot",
    "he",
    "normal",
    "uniform",
    "zeros",
]
