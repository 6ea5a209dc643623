"""Training: the loop, optimizers and schedules, evaluation, callbacks, and models in files."""

from gbnn.training import metrics, schedules, snapshot
from gbnn.training.callbacks import best_checkpoint, csv_log, early_stopping, jsonl_log, tensorboard
from gbnn.training.checkpoint import Saved, load, load_all, save
from gbnn.training.evaluate import evaluate, outputs, predict, predict_proba
from gbnn.training.fit import Callback, EpochEnd, Event, fit
from gbnn.training.history import History
from gbnn.training.loop import train
from gbnn.training.optimizers import adagrad, adam, adamw, rmsprop, sgd
from gbnn.training.ranking import ranked, top_k
from gbnn.training.schedules import Schedule
from gbnn.training.state import State, Step
from gbnn.training.transform import Transform, add_decayed_weights, chain, clip_by_norm, scale

__all__ = [
    "Callback",
    "EpochEnd",
    "Event",
    "History",
    "Saved",
    "Schedule",
    "State",
    "Step",
    "Transform",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "best_checkpoint",
    "chain",
    "clip_by_norm",
    "csv_log",
    "early_stopping",
    "evaluate",
    "fit",
    "jsonl_log",
    "load",
    "load_all",
    "metrics",
    "outputs",
    "predict",
    "predict_proba",
    "ranked",
    "rmsprop",
    "save",
    "scale",
    "schedules",
    "sgd",
    "snapshot",
    "tensorboard",
    "top_k",
    "train",
]
