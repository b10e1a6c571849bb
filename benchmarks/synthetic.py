"""Projects of many synthetic classes, with thumbnails of the usual size."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.validation import Doubles

THUMBNAIL = 2500  # bytes


def many_classes(path: Path, space: Space, *, classes: int, shots: int, seed: int = 0) -> Project:
    """Write a model of synthetic classes with thumbnails of the usual size."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(classes, space.dimension))
    arrivals = [
        Arrival(f"domain{number % 8}/class{number:04d}", synthetic_example(means[number], f"{number}-{shot}", rng))
        for number in range(classes)
        for shot in range(shots)
    ]
    project = Project(path, empty_state(space, has_text=False), journal=True)
    project.learn(arrivals)
    return project


def synthetic_example(mean: Doubles, name: str, rng: np.random.Generator) -> Example:
    """Draw an image of a class around its mean."""
    row = mean + rng.normal(size=mean.shape)
    unit = (row / np.linalg.norm(row)).astype(np.float32)
    return Example(unit, hashlib.sha256(name.encode()).digest(), f"{name}.jpg", rng.bytes(THUMBNAIL))
