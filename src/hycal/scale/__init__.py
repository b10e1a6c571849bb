"""Very many samples or classes: learning in shards, and a shortlist of candidates before scoring.

Users and benchmarks import it; no other room does.
Shards never change the model. A shortlist never scores all classes: docs/explanation/scale.md says how often it
misses the best.
"""

from hycal.scale.mapped import MappedMeans
from hycal.scale.shards import learn_shards
from hycal.scale.shortlist import Shortlist

__all__ = ["MappedMeans", "Shortlist", "learn_shards"]
