"""Domains of real embeddings: a stream of five in CLIP ViT-B/32, and the bundled disciplines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.data import load_xd8
from hycal.validation import Floats

ROOT = Path(__file__).resolve().parents[1]

#: Domain: split to learn from, split to ask, shots.
STREAM: Mapping[str, tuple[str, str, int]] = {
    "aircraft": ("train", "test", 10),
    "dtd": ("val", "test", 10),
    "flowers": ("train", "test", 10),
    "cars": ("train", "val", 10),
    "sun397": ("train", "val", 8),
}


@dataclass(frozen=True, eq=False)
class Domain:
    """One domain: what to learn, what to ask, and the text embedding of each class where there is one."""

    name: str
    X: Floats
    y: npt.NDArray[np.str_]
    queries: Floats
    answers: npt.NDArray[np.str_]
    text: Mapping[str, Floats] | None

    def accuracy(self, classifier: IncrementalClassifier) -> float:
        """Return the share of right answers in percent."""
        return 100.0 * float(np.mean(classifier.predict(self.queries) == self.answers))


def data_folder() -> Path:
    """Return the folder of the development data: HYCAL_DATA, or shared/data beside the repository."""
    return Path(os.environ.get("HYCAL_DATA", ROOT.parent / "shared" / "data"))


def folder() -> Path:
    """Return the folder of the embeddings."""
    return data_folder() / "clip-vitb32"


def missing() -> str:
    """Say what is missing, or nothing."""
    absent = [name for name in STREAM if not (folder() / f"{name}.npz").is_file()]
    return f"{folder()} lacks {', '.join(f'{name}.npz' for name in absent)}; set HYCAL_DATA" if absent else ""


def stream(names: Sequence[str] = tuple(STREAM), *, shots: int | None = 10, queries: int | None = None) -> list[Domain]:
    """Return the domains, with at most `shots` of each class (None: all) and, where given, some `queries` only."""
    complaint = missing()
    if complaint:
        raise SystemExit(complaint)
    return [_domain(name, shots, queries) for name in names]


def _domain(name: str, shots: int | None, queries: int | None) -> Domain:
    learn, ask, most = STREAM[name]
    with np.load(folder() / f"{name}.npz") as file:
        content: dict[str, Any] = dict(file)
    y = content[f"{learn}_y"]
    rows = np.concatenate(
        [np.flatnonzero(y == label)[: None if shots is None else min(shots, most)] for label in np.unique(y)]
    )
    asked = np.arange(len(content[f"{ask}_y"]))
    if queries is not None:
        asked = asked[:: max(1, len(asked) // queries)]
    text = content.get("text")
    return Domain(
        name,
        content[f"{learn}_x"][rows].astype(np.float32),
        _labels(name, y[rows]),
        content[f"{ask}_x"][asked].astype(np.float32),
        _labels(name, content[f"{ask}_y"][asked]),
        None if text is None else dict(zip(_labels(name, np.arange(len(text))), text.astype(np.float32), strict=True)),
    )


def _labels(name: str, y: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    return np.array([f"{name}/{label:03d}" for label in y])


def disciplines(encoders: Sequence[str] = ()) -> list[Domain]:
    """Return the bundled embeddings as domains; of several encoders, their rows side by side."""

    def names(domain: str, classes: Sequence[str], y: npt.NDArray[np.int64]) -> npt.NDArray[np.str_]:
        return np.array([f"{domain}/{classes[label]}" for label in y])

    return [
        Domain(
            name,
            one.train_x,
            names(name, one.class_names, one.train_y),
            one.test_x,
            names(name, one.class_names, one.test_y),
            None,
        )
        for name, one in load_xd8(encoders).items()
    ]


def all_queries(domains: Sequence[Domain]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.str_]]:
    """Return all queries with their labels."""
    return np.concatenate([one.queries for one in domains]), np.concatenate([one.answers for one in domains])


def learn_in_order(classifier: IncrementalClassifier, domains: Sequence[Domain]) -> IncrementalClassifier:
    """Learn the domains in order; return the classifier."""
    for domain in domains:
        classifier.partial_fit(domain.X, domain.y, domain=domain.name, text=domain.text)
    return classifier
