"""Streams, methods and measures of `benchmarks.hierarchical`: five real domains, the xd8 embeddings, cars with text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.domains import Domain, learn_in_order, stream
from hycal import (
    GDA,
    KLDA,
    NCM,
    SLDA,
    DualRAIL,
    FeCAM,
    HierarchicalHyCal,
    HyCal,
    PrimalRAIL,
    RanPAC,
    TipAdapter,
    ZeroShot,
)
from hycal.base import IncrementalClassifier
from hycal.bench.domains import load_domains
from hycal.bench.metrics import calibration_error
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import load_setting

SEEDS = (0, 1, 42, 1993)
#: The paper's shots where it has the domain, 5 where it has not; cross-scale: 5 to all there are, by class.
SHOTS: Mapping[str, Mapping[str, int]] = {
    "balanced": {"aircraft": 5, "dtd": 10, "flowers": 5, "cars": 5, "sun397": 5},
    "cross-scale": {"aircraft": 16, "dtd": 24, "flowers": 16, "cars": 16, "sun397": 8},
    "high-scale": {"aircraft": 10, "dtd": 20, "flowers": 10, "cars": 5, "sun397": 5},
}
METHODS: Mapping[str, Callable[[], IncrementalClassifier]] = {
    "HierarchicalHyCal": HierarchicalHyCal,
    "domains found": lambda: HierarchicalHyCal(domains="found"),
    "HyCal": lambda: HyCal(fusion="image"),
    "NCM": NCM,
    "SLDA": SLDA,
    "GDA": lambda: GDA(zero_shot="none"),
    "FeCAM": FeCAM,
    "TipAdapter": lambda: TipAdapter(zero_shot="none"),
    "DualRAIL": lambda: DualRAIL(zero_shot="none"),
    "KLDA": KLDA,
    "PrimalRAIL": lambda: PrimalRAIL(zero_shot="none"),
    "RanPAC": lambda: RanPAC(ridge="joint"),
}
TEXT: Mapping[str, Callable[[], IncrementalClassifier]] = {
    "HierarchicalHyCal": HierarchicalHyCal,
    "ZeroShot": ZeroShot,
    "HyCal": HyCal,
    "GDA": GDA,
    "TipAdapter": TipAdapter,
    "DualRAIL": DualRAIL,
    "PrimalRAIL": PrimalRAIL,
}


def five_domains(setting: str, seed: int, queries: int | None) -> list[Domain]:
    """Return the five domains with the shots of a setting, drawn by seed."""
    return [_drawn(domain, setting, seed) for domain in stream(shots=None, queries=queries)]


def _drawn(domain: Domain, setting: str, seed: int) -> Domain:
    rng, counts = np.random.default_rng([seed, *domain.name.encode()]), random.Random(f"{seed}/{domain.name}")
    most, rows = SHOTS[setting][domain.name], []
    for label in np.unique(domain.y):
        shots = counts.randint(5, most) if setting == "cross-scale" else most
        rows.append(rng.permutation(np.flatnonzero(domain.y == label))[:shots])
    chosen = np.concatenate(rows)
    return Domain(domain.name, domain.X[chosen], domain.y[chosen], domain.queries, domain.answers, None)


def xd8(setting: str, seed: int) -> list[Domain]:
    """Return the bundled domains with the shots of a setting of the benchmark."""
    chosen = load_setting(f"xd8-{setting}")
    embedded = load_domains(chosen)
    samples = draw_samples(chosen, seed, {name: domain.train_y for name, domain in embedded.items()})
    return [
        Domain(
            name,
            domain.train_x[list(samples[name].rows)],
            np.array(domain.labels)[list(samples[name].labels)],
            domain.test_x,
            np.array(domain.labels)[domain.test_y],
            None,
        )
        for name, domain in embedded.items()
    ]


def learned(method: Callable[[], IncrementalClassifier], domains: Sequence[Domain]) -> IncrementalClassifier:
    """Learn the domains in order, with a new classifier."""
    return learn_in_order(method(), domains)


def measured(classifier: IncrementalClassifier, domains: Sequence[Domain]) -> tuple[float, float]:
    """Return the mean accuracy over domains, and the calibration error over all queries."""
    hits, chances = [], []
    for domain in domains:
        probabilities = classifier.predict_proba(domain.queries)
        hits.append(classifier.classes_[probabilities.argmax(axis=1)] == domain.answers)
        chances.append(probabilities.max(axis=1))
    accuracy = 100.0 * float(np.mean([hit.mean() for hit in hits]))
    return accuracy, calibration_error(np.concatenate(chances), np.concatenate(hits))


class CellCache:
    """Measured cells in a JSON file, so that what was measured is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells: dict[str, list[float]] = json.loads(path.read_text()) if path.is_file() else {}

    def __call__(self, key: str, measure: Callable[[], Sequence[float]]) -> list[float]:
        """Return the cell, measuring it if it is not there."""
        if key not in self.cells:
            self.cells[key] = [round(value, 4) for value in measure()]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.cells, indent=1, sort_keys=True) + "\n")
        return self.cells[key]


def cars(shots: int) -> Domain:
    """Return cars with text, the first shots of each class."""
    full = stream(["cars"], shots=None)[0]
    rows = np.concatenate([np.flatnonzero(full.y == label)[:shots] for label in np.unique(full.y)])
    return Domain("cars", full.X[rows], full.y[rows], full.queries, full.answers, full.text)


def digits(shots: int) -> Domain:
    """Return the pixels of scikit-learn's digits, the first shots of each class; the last thousand are asked."""
    X, y = load_digits(return_X_y=True)
    X, y = X.astype(np.float32), y.astype(str)
    rows = np.concatenate([np.flatnonzero(y[:-1000] == label)[:shots] for label in np.unique(y)])
    return Domain("digits", X[rows], y[rows], X[-1000:], y[-1000:], None)
