"""Where tests find real embeddings, and how they say that there are none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "hycal", derandomize=True, deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hycal")

DATA = Path(os.environ.get("HYCAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_folder():
    if not DATA.is_dir():
        pytest.skip(f"no real data at {DATA}; set HYCAL_DATA to a folder that holds clip-vitb32")
    return DATA


@pytest.fixture(scope="session")
def cars(data_folder):
    """Stanford Cars in CLIP ViT-B/32: train, queries, text."""
    return np.load(data_folder / "clip-vitb32" / "cars.npz")
