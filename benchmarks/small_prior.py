"""The three numbers of `hycal.uncertainty.calibration.TemperaturePrior`: python -m benchmarks.small_prior.

Small problems are drawn from the training embeddings of the bundled disciplines alone: some images are learned, others
of the same classes are asked. The numbers maximise the likelihood of the answers at T0, without any held-out evidence.
The second table leaves each discipline out in turn: the calibration error of its problems under the numbers of the
other seven. No embedding of ViT-B/32, and no test image, is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax

from benchmarks.domains import Domain, disciplines
from benchmarks.small_problems import CLASSES, SHOTS, Problem, problems
from hycal import HierarchicalHyCal
from hycal.bench.metrics import calibration_error
from hycal.uncertainty.calibration import TemperaturePrior
from hycal.validation import Doubles

_START = (-2.5, -0.5, -0.3)


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a problem's queries, the column of each answer, and log T0 as a function of the three numbers."""

    discipline: str
    scores: Doubles
    own: npt.NDArray[np.intp]
    features: Doubles
    offset: float
    floor: float

    @classmethod
    def of(cls, problem: Problem) -> Scored:
        """Learn a problem and score its queries."""
        classifier = HierarchicalHyCal().fit(problem.X, problem.y)
        snapshot = classifier.snapshot()

        def log_t0(**numbers: float) -> float:
            prior = TemperaturePrior(**{"level": 1.0, "separation": 0.0, "shots": 0.0, **numbers})
            return float(np.log(prior.centre(classifier, snapshot.value, snapshot.records)))

        offset = log_t0()
        features = np.array([1.0, log_t0(separation=1.0) - offset, log_t0(shots=1.0) - offset])
        scores = classifier.decision_function(problem.queries).astype(np.float64)
        own = np.searchsorted(classifier.classes_, problem.answers)
        return cls(problem.discipline, scores, own, features, offset, classifier.calibration_.floor)

    def chances(self, numbers: Doubles) -> Doubles:
        """Return the probabilities at T0."""
        T0 = np.exp(self.offset + self.features @ numbers)
        return (1.0 - self.floor) * softmax(self.scores / T0, axis=1) + self.floor / self.scores.shape[1]


def fitted(found: Sequence[Scored]) -> Doubles:
    """Return log level, and the exponents of separation and shots, that make the answers most likely."""

    def loss(numbers: Doubles) -> float:
        return -float(
            np.mean([np.mean(np.log(each.chances(numbers)[np.arange(len(each.own)), each.own])) for each in found])
        )

    return minimize(loss, _START, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-5}).x


def error(found: Iterable[Scored], numbers: Mapping[str, Doubles]) -> float:
    """Return the calibration error in percent, each problem with the numbers of its discipline."""
    chances = [(each.chances(numbers[each.discipline]), each.own) for each in found]
    hits = np.concatenate([part.argmax(axis=1) == own for part, own in chances])
    return calibration_error(np.concatenate([part.max(axis=1) for part, _ in chances]), hits)


def from_training_rows(domain: Domain) -> Domain:
    """Return a domain that is learned from every second training image and asked with the others."""
    order = np.random.default_rng(0).permutation(len(domain.y))
    learn, ask = order[::2], order[1::2]
    return replace(domain, X=domain.X[learn], y=domain.y[learn], queries=domain.X[ask], answers=domain.y[ask])


def main() -> None:
    """Print the numbers, and the calibration error of each discipline under those of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=16, help="of each number of classes and images")
    options = parser.parse_args()
    domains = [from_training_rows(domain) for domain in disciplines()]
    found = [
        Scored.of(problem)
        for classes in CLASSES
        for shots in SHOTS
        for problem in problems(domains, classes, shots, draws=options.draws, seed=1)
    ]
    level, separation, shots_power = fitted(found)
    print(f"{len(found)} problems: level {np.exp(level):.4f}, separation {separation:.3f}, shots {shots_power:.3f}")
    others = {
        name: fitted([each for each in found if each.discipline != name])
        for name in sorted({each.discipline for each in found})
    }
    print("calibration error of each discipline under the numbers of the others, without held-out evidence:")
    for name, numbers in others.items():
        own = error([each for each in found if each.discipline == name], others)
        print(f"{name:10} {own:6.1f}%  {numbers.round(3)}")
    print(f"{'together':10} {error(found, others):6.1f}%")


if __name__ == "__main__":
    main()
