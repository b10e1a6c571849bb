"""Profiles of hypothesis, and real embeddings for several folders of tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support.data import require

settings.register_profile(
    "hycal", derandomize=True, deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hycal")


@pytest.fixture(scope="session")
def cars():
    """Stanford Cars in CLIP ViT-B/32: train, queries, text."""
    return np.load(require("clip-vitb32") / "cars.npz")
