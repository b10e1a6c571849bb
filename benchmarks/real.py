"""Real CLIP ViT-B/32 embeddings as a stream of domains."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
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


def folder() -> Path:
    """Return where the embeddings lie: HYCAL_DATA, or shared/data beside the repository."""
    return Path(os.environ.get("HYCAL_DATA", ROOT.parent / "shared" / "data")) / "clip-vitb32"


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
