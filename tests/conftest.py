"""Profiles of hypothesis, and real embeddings for several folders of tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support.data import require

_QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("hycal", derandomize=True, max_examples=15, **_QUIET)
#: New inputs at every run: `make test-random`, or `pytest -m hypothesis --hypothesis-profile random`.
settings.register_profile("random", derandomize=False, max_examples=100, print_blob=True, **_QUIET)
settings.load_profile("hycal")


@pytest.fixture(scope="session")
def cars():
    """Stanford Cars in CLIP ViT-B/32: train, queries, text."""
    return np.load(require("clip-vitb32") / "cars.npz")
