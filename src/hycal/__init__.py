"""Teach a classifier new image classes from a handful of examples, without retraining and without forgetting."""

from hycal._version import __version__

__all__ = ["__version__"]
