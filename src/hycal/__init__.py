"""Teach a classifier new image classes from a handful of examples, without retraining and without forgetting."""

from hycal._version import __version__
from hycal.classifiers import METHODS, HyCal
from hycal.errors import HyCalError, ModelFileError
from hycal.loading import load

__all__ = ["METHODS", "HyCal", "HyCalError", "ModelFileError", "__version__", "load"]
