"""For authors of methods: the laws as checks that any classifier can run, and small streams of data.

Tests and other packages import it; nothing in hycal but the benchmark does.
It never needs real data.

Examples
--------
>>> from hycal.testing import LAWS
>>> "forgetting" in LAWS
True
"""

from hycal.state.steps import LearningStep
from hycal.testing.laws import LAWS, BrokenLawError, check_laws
from hycal.testing.streams import Stream, learn

__all__ = ["LAWS", "BrokenLawError", "LearningStep", "Stream", "check_laws", "learn"]
