"""The methods, one in each file."""

from collections.abc import Mapping

from hycal.base import IncrementalClassifier
from hycal.classifiers.hycal import HyCal

#: Every method by name. Laws, benchmark, command line and docs find them here.
METHODS: Mapping[str, type[IncrementalClassifier]] = {method.__name__: method for method in (HyCal,)}

__all__ = ["METHODS", "HyCal"]
