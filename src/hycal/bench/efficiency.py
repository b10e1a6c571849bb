"""What it costs to add classes: operations counted from the formulas, time and bytes measured.

The case is the paper's: 10 classes are added to a model of 290, d = 512. Random features are 1024 wide, as in the
paper's baselines. Counts are floating point operations, leading terms, a multiplication and an addition being two: what
this package does from `partial_fit` to the first answer. A symmetric eigendecomposition of n rows counts 9 n³, a
Cholesky factorisation n³/3, a Gram matrix of n rows and m columns n m².

>>> round(count("HyCal (dense)", CASE) / 1e9, 1)
5.4
>>> round(stored("HyCal (dense)", CASE) / 2**20)
301
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from hycal.bench.methods import Variant
from hycal.bench.settings import load_setting
from hycal.classifiers import METHODS
from hycal.storage.atomic import write_whole
from hycal.testing.streams import Stream

FILE = "efficiency.json"
DENSE = "HyCal (dense)"  # as published: a d x d matrix for each class, by pseudo-inverse (4 d³)
_NUMBER = 4  # bytes of a float32


@dataclass(frozen=True)
class Case:
    """Classes in all, classes that are added, shots of each, dimension, random features."""

    classes: int = 300
    added: int = 10
    shots: int = 10
    width: int = 512
    features: int = 1024

    @property
    def samples(self) -> int:
        """N, after the addition."""
        return self.classes * self.shots


CASE = Case()


def _factor(shots: int, width: int) -> float:
    """Operations for the covariance factor of one class: Gram matrix, eigendecomposition, product."""
    return shots**2 * width + 9 * shots**3 + 2 * shots**2 * width


def _solve(rows: int, width: int, columns: int) -> float:
    """Operations for a regression of `columns` targets on `width` features, in the smaller of its two forms."""
    small = min(rows, width)
    return rows * width * small + small**3 / 3 + 2 * small**2 * columns + 2 * rows * width * columns


def _choice(case: Case) -> float:
    """Operations for RanPAC's choice of a ridge on the samples that are added."""
    n = case.added * case.shots
    return 2 * n * case.width * case.features + n**2 * case.features + 9 * n**3


def _on_features(case: Case) -> float:
    return 2 * case.samples * case.width * case.features + _solve(case.samples, case.features, case.classes)


_COUNTS: Mapping[str, Callable[[Case], float]] = {
    DENSE: lambda c: c.added * (2 * c.shots * c.width**2 + 4 * c.width**3),
    "HyCal": lambda c: c.added * _factor(c.shots, c.width),
    "ZeroShot": lambda c: 0.0,
    "NCM": lambda c: c.samples * c.width,
    "SLDA": lambda c: _solve(c.samples, c.width, c.classes),
    "GDA": lambda c: _solve(c.samples, c.width, c.classes),
    "FeCAM": lambda c: c.classes * _factor(c.shots, c.width),
    "RanPAC": lambda c: _on_features(c) + _choice(c),
    "KLDA": _on_features,
    "PrimalRAIL": _on_features,
    "DualRAIL": lambda c: 2 * c.samples**2 * c.width + c.samples**3 / 3 + 2 * c.samples**2 * c.classes,
    "TipAdapter": lambda c: 0.0,
}


def count(method: str, case: Case) -> float:
    """Return the operations for adding the classes of a case; NaN for a method without a formula."""
    return float(_COUNTS[method](case)) if method in _COUNTS else float("nan")


def stored(method: str, case: Case) -> float:
    """Return the bytes that a model stores after the addition: samples and texts, or as published dense matrices."""
    if method == DENSE:
        return float(_NUMBER * case.classes * (case.width**2 + case.width))
    return float(_NUMBER * (case.samples + case.classes) * case.width)


@dataclass(frozen=True)
class Measured:
    """Processor seconds from adding the classes to the first answer, and bytes of state."""

    seconds: float
    state_bytes: int


def measure(case: Case = CASE) -> Iterator[tuple[str, Measured]]:
    """Yield every method with what adding the classes of a case takes, on one core."""
    before, after = case.classes - case.added, case.added
    stream = Stream.synthetic(0, shots=[[case.shots] * before, [case.shots] * after], width=case.width)
    setting = load_setting("xd8-high-scale")  # its parameters are the widths of the case
    first, second = stream.steps
    for method in METHODS:
        classifier = Variant(method).build(setting, text=True)
        with threadpool_limits(limits=1):
            classifier.partial_fit(first.X, list(first.y), domain=first.domain, text=first.text)
            classifier.predict(stream.queries[:1])
            began = time.process_time()
            classifier.partial_fit(second.X, list(second.y), domain=second.domain, text=second.text)
            classifier.predict(stream.queries[:1])
            yield method, Measured(time.process_time() - began, classifier.nbytes_)


def write_efficiency(folder: Path, measured: Mapping[str, Measured]) -> Path:
    """Write what was measured; returns the path."""
    document = {name: {"seconds": round(m.seconds, 4), "state_bytes": m.state_bytes} for name, m in measured.items()}
    path = folder / FILE
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode())
    return path


def read_efficiency(folder: Path) -> dict[str, Measured]:
    """Return what was measured by method; nothing if it was not."""
    try:
        document = json.loads((folder / FILE).read_bytes())
        return {name: Measured(float(m["seconds"]), int(m["state_bytes"])) for name, m in document.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
