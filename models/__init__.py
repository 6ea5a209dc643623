"""Ready-made networks: functions that return a `Layer`."""

if __name__ != "gbnn.models":
    raise ImportError("this folder is the package gbnn.models: import it by that name")

from gbnn.models.mlp import mlp

__all__ = ["mlp"]
