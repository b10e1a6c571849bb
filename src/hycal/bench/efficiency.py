"""What it costs to add classes: operations counted from the formulas, time and bytes measured.

The case is the paper's: 10 classes are added to a model of 290, d = 512. Random features are 1024 wide, as in the
paper's baselines. `hycal.algebra.cost` says how operations are counted.

>>> round(count("HyCal (dense)", CASE) / 1e9, 1)
5.4
>>> round(stored("HyCal (dense)", CASE) / 2**20)
301
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from hycal.algebra.cost import Addition
from hycal.bench.methods import Variant
from hycal.bench.settings import load_setting
from hycal.classifiers import METHODS
from hycal.storage.atomic import write_whole
from hycal.testing.streams import Stream

FILE = "efficiency.json"
DENSE = "HyCal (dense)"  # as published: a d x d matrix for each class, by pseudo-inverse (4 d³)
_NUMBER = 4  # bytes of a float32


CASE = Addition()


def count(method: str, case: Addition) -> float:
    """Return the operations for adding the classes of a case; NaN for a method that does not state them."""
    if method == DENSE:
        return float(case.added * (2 * case.shots * case.width**2 + 4 * case.width**3))
    return float(METHODS.find(method).operations(case))


def stored(method: str, case: Addition) -> float:
    """Return the bytes that a model stores after the addition: samples and texts, or as published dense matrices."""
    if method == DENSE:
        return float(_NUMBER * case.classes * (case.width**2 + case.width))
    return float(_NUMBER * (case.samples + case.classes) * case.width)


@dataclass(frozen=True)
class Measured:
    """Processor seconds from adding the classes to the first answer, and bytes of state."""

    seconds: float
    state_bytes: int


def measure(case: Addition = CASE) -> Iterator[tuple[str, Measured]]:
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
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode(), mark=b'"state_bytes"')
    return path


def read_efficiency(folder: Path) -> dict[str, Measured]:
    """Return what was measured by method; nothing if it was not."""
    try:
        document = json.loads((folder / FILE).read_bytes())
        return {name: Measured(float(m["seconds"]), int(m["state_bytes"])) for name, m in document.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
