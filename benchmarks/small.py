"""Models of 2 to 20 classes and 1 to 10 images of each: python -m benchmarks.small.

Draws of classes and training images of one discipline, asked with test images, with the default method. Tables: the
calibration error (ECE), and how often known images, images of other disciplines and images of unlearned classes of the
same discipline are called unknown at an error of 5%, each beside a rule of ten lines (`rule_of_ten_lines`); how often
the measured accuracy lies in the 90% interval that was estimated, with and without near-duplicates among the images;
the accuracy beside other methods. A star marks what misses its target. Cells are kept in --out, so a run that was
stopped goes on; --quick makes few draws. The ViT-B/32 sets are asked if they are there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from benchmarks.domains import Domain
from benchmarks.hierarchical_streams import METHODS, CellCache
from benchmarks.small_problems import CLASSES, SHOTS, Problem, problems, suites
from hycal import HierarchicalHyCal
from hycal.bench.metrics import calibration_error
from hycal.uncertainty.cross_validation import cross_validate
from hycal.validation import Floats, unit_rows

DEFAULT = HierarchicalHyCal
CHEAP = ("HierarchicalHyCal", "NCM", "SLDA", "GDA", "HyCal", "FeCAM", "TipAdapter", "DualRAIL")
_ERROR = 0.05
_NEVER = float("nan")

Measure = Callable[[Sequence[Problem]], Sequence[float]]
Reject = Callable[[Floats], npt.NDArray[np.bool_]]


def rule_of_ten_lines(X: Floats, y: npt.NDArray[np.str_], error: float) -> Reject:
    """Return what rejects queries less similar to every class mean than left-one-out samples are to their own."""
    labels, own = np.unique(y, return_inverse=True)
    sums = np.stack([X[own == label].sum(axis=0) for label in range(len(labels))])
    left_out = np.sum(X * unit_rows(sums[own] - X), axis=1)
    threshold = left_out.mean() - t.ppf(1 - error, len(X) - 1) * left_out.std(ddof=1)
    means = unit_rows(sums)
    return lambda queries: (queries @ means.T).max(axis=1) < threshold


def trust(found: Sequence[Problem]) -> list[float]:
    """Return accuracy, ECE, and the rejection of known, other and unlearned images, by us and by the rule."""
    hits, surest = [], []
    rejections: list[list[float]] = []
    for problem in found:
        classifier = DEFAULT().fit(problem.X, problem.y)
        chances = classifier.predict_proba(problem.queries)
        hits.append(classifier.classes_[chances.argmax(axis=1)] == problem.answers)
        surest.append(chances.max(axis=1))
        if len(problem.y) > len(classifier.classes_):
            asked = problem.queries, problem.others, problem.unlearned
            rule = rule_of_ten_lines(problem.X, problem.y, _ERROR)
            rejections.append([_share(reject, X) for X in asked for reject in (classifier.unknown, rule)])
    right = np.concatenate(hits)
    rejected = 100.0 * np.nanmean(rejections, axis=0) if rejections else np.full(6, _NEVER)
    return [100.0 * right.mean(), calibration_error(np.concatenate(surest), right), *rejected]


def _share(reject: Reject, X: Floats) -> float:
    return float(np.mean(reject(X))) if len(X) else _NEVER


def estimates(found: Sequence[Problem]) -> list[float]:
    """Return how often the measured accuracy is in the interval, and the mean width, without and with duplicates."""
    cells: list[float] = []
    for planted in (False, True):
        inside, widths = [], []
        for number, original in enumerate(found):
            problem = original.with_duplicates(number) if planted else original
            classifier = DEFAULT().fit(problem.X, problem.y)
            found_accuracy = cross_validate(classifier, classifier.records_).estimate()
            measured = np.mean(classifier.predict(problem.queries) == problem.answers)
            inside.append(found_accuracy.low <= measured <= found_accuracy.high)
            widths.append(found_accuracy.high - found_accuracy.low)
        cells += [100.0 * float(np.mean(inside)), 100.0 * float(np.mean(widths))]
    return cells


def accuracies(names: Sequence[str]) -> Measure:
    """Return what measures the accuracy of methods."""

    def measure(found: Sequence[Problem]) -> list[float]:
        return [100.0 * float(np.concatenate([_hits(name, problem) for problem in found]).mean()) for name in names]

    return measure


def _hits(name: str, problem: Problem) -> npt.NDArray[np.bool_]:
    return np.asarray(METHODS[name]().fit(problem.X, problem.y).predict(problem.queries) == problem.answers)


def trust_row(suite: str, classes: int, shots: int, cell: Sequence[float]) -> str:
    """Return a row with a star behind each figure that misses its target."""
    right, ece, known, known_rule, others, others_rule, near, near_rule = cell
    few = classes == 2 and shots < 5
    most = 18.0 if suite != "xd8" else 15.0 if few else 10.0
    row = f"{right:9.1f}{_starred(ece, ece > (8.0 if shots == 1 else 6.0))}"
    if shots == 1:
        return row
    row += f"{_starred(known, known > most)}{known_rule:7.1f}{_starred(others, others < 75.0)}{others_rule:7.1f}"
    return row + f"{_starred(near, near < near_rule - 0.05)}{near_rule:7.1f}"


def estimate_row(suite: str, classes: int, shots: int, cell: Sequence[float]) -> str:
    """Return a row with a star behind a coverage under 85%."""
    plain, width, planted, planted_width = cell
    return f"{_starred(plain, plain < 85)}{width:7.1f}{_starred(planted, planted < 85)}{planted_width:7.1f}"


def accuracy_row(suite: str, classes: int, shots: int, cell: Sequence[float]) -> str:
    """Return a row with a star if the first method is more than 0.3 points below the best."""
    return "".join(f"{value:12.1f}" for value in cell) + "*" * (cell[0] < max(cell) - 0.3)


def _starred(value: float, missed: bool) -> str:
    return f"{value:9.1f}" + ("*" if missed else " ")


def table(
    title: str,
    header: Sequence[str],
    measure: Measure,
    row: Callable[[str, int, int, Sequence[float]], str],
    suites: Mapping[str, Sequence[Domain]],
    kept: CellCache,
    draws: int,
) -> None:
    """Print one row for each suite, number of classes and number of images."""
    print(f"\n{title}, {draws} draws\n{'classes x images':24}{''.join(header)}", flush=True)
    for suite, domains in suites.items():
        for classes, shots in product(CLASSES, SHOTS):
            if title != "Estimates" or shots > 1:
                key = f"{title}/{draws}/{suite}/{classes}x{shots}/{len(header)}"
                cell = kept(key, partial(_measured, measure, domains, classes, shots, draws))
                print(f"{suite:12}{classes:4} x {shots:<5}{row(suite, classes, shots, cell)}", flush=True)


def _measured(measure: Measure, domains: Sequence[Domain], classes: int, shots: int, draws: int) -> Sequence[float]:
    return measure(list(problems(domains, classes, shots, draws=draws)))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/small.json"))
    parser.add_argument("--only", nargs="*", choices=["trust", "estimates", "accuracy"])
    parser.add_argument("--methods", nargs="*", default=list(CHEAP), choices=list(METHODS))
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="8 draws")
    options = parser.parse_args()
    kept, draws = CellCache(options.out), 8 if options.quick else options.draws
    beside = [f"{name:>9} {'rule':>7}" for name in ("known", "others", "unlearned")]
    tables: Mapping[str, tuple[str, Sequence[str], Measure, Callable[..., str]]] = {
        "trust": ("Trust", [f"{'accuracy':>9}{'ECE':>9} ", *beside], trust, trust_row),
        "estimates": ("Estimates", [f"{'inside':>9} {'width':>7}{'planted':>9} {'width':>7}"], estimates, estimate_row),
        "accuracy": (
            "Accuracy",
            [f"{name[:11]:>12}" for name in options.methods],
            accuracies(options.methods),
            accuracy_row,
        ),
    }
    for name, parts in tables.items():
        if not options.only or name in options.only:
            table(*parts, suites(), kept, draws)


if __name__ == "__main__":
    main()
