"""HyCal on Stanford Cars with text, its measures one by one, and the readings of the paper.

    python -m benchmarks.readings

Accuracy in percent on 1,635 queries of 196 classes, CLIP ViT-B/32, learned from images of each class that are drawn at
random. "Agrees" is the share of answers that are those of HyCal as it is by default.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.domains import Domain, stream
from benchmarks.printed import PrintedTable
from hycal import HyCal, ZeroShot
from hycal.base import IncrementalClassifier

SHOTS = (2, 5, 16)
FORMS: dict[str, Callable[[], IncrementalClassifier]] = {
    "HyCal": HyCal,
    "cosine": lambda: HyCal(metric="cosine"),
    "cosine of images alone": lambda: HyCal(metric="cosine", fusion="image"),
    "Mahalanobis": lambda: HyCal(metric="mahalanobis"),
    "average of both": lambda: HyCal(metric="average"),
    'rule="released"': lambda: HyCal(rule="released"),
    'rule="literal"': lambda: HyCal(rule="literal"),
    "ZeroShot": ZeroShot,
}


def learned(method: IncrementalClassifier, cars: Domain, shots: int) -> IncrementalClassifier:
    """Learn so many images of each class, the same for every method."""
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(cars.y == label), shots, replace=False) for label in np.unique(cars.y)]
    chosen = np.concatenate(rows)
    return method.partial_fit(cars.X[chosen], cars.y[chosen], domain=cars.name, text=cars.text)


def main() -> None:
    """Print the table."""
    (cars,) = stream(["cars"], shots=None)
    usual = {shots: learned(HyCal(), cars, shots).predict(cars.queries) for shots in SHOTS}
    heads = [head for shots in SHOTS for head in (f"{shots} shots", "agrees")]
    table = PrintedTable("Cars with text: accuracy, and agreement with HyCal, in percent", "form", *heads)
    for name, form in FORMS.items():
        cells = []
        for shots in SHOTS:
            found = learned(form(), cars, shots).predict(cars.queries)
            cells += [f"{100 * np.mean(found == truth):.1f}" for truth in (cars.answers, usual[shots])]
        table.row(name, *cells)


if __name__ == "__main__":
    main()
