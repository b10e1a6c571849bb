"""Learning domain after domain, and counting right answers after each step.

CIL     candidates are all classes learned so far; domains learned so far are tested.
MTIL    the domain of a test image is known: candidates are its classes.
X-TAIL  all classes of the sequence are candidates from the start, by their text until they are learned, and all domains
        are tested after each step. For a method that cannot score a class by its text, candidates are the learned
        classes, and its answers before a domain is learned are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.bench.domains import BenchDomain, have_text, queries_of
from hycal.bench.metrics import calibration_error
from hycal.bench.sampling import SampleList
from hycal.classifiers import ZeroShot
from hycal.gravity import Gravity, measure
from hycal.uncertainty.calibration import Calibration
from hycal.validation import Doubles

Counts = list[list[int | None]]


@dataclass(frozen=True)
class Outcome:
    """The answers of one run, counted."""

    # Right answers after each step on each domain, in the order of learning; None where nothing was asked.
    correct: Counts
    # Right answers on each domain of a classifier that learned this domain alone; None where that was not measured.
    alone: list[int | None]
    # Whether the answer to each test image of each domain is right after the last step.
    right: list[npt.NDArray[np.bool_]]
    class_correct: dict[str, int]  # right answers after the last step by label
    # Expected calibration error after the last step, in percent, over the test images of all domains.
    calibration_error: float
    class_shots: dict[str, int]  # images learned of each label
    nbytes: int  # bytes of state after the last step
    # How often images of one domain are classified into another after the last step; None if the domain is given, or is
    # the only one, or if only the last step is tested.
    gravity: Gravity | None


def run_stream(
    classifier: IncrementalClassifier,
    domains: Sequence[BenchDomain],
    samples: Mapping[str, SampleList],
    protocol: str,
    *,
    tuned: bool = False,
    tests: str = "every-step",
) -> Outcome:
    """Teach `classifier` the domains in order, each in one call, and test it after each, or after the last step alone.

    No sample is learned twice: a step adds to the statistics of the steps before. With `tuned` the classifier sets its
    parameters before each test, from the samples that it has learned.
    """
    untaught = classifier.with_parameters()
    correct, answers = _learn_and_test(classifier, domains, samples, protocol, tuned=tuned, tests=tests)
    hits = _hits(answers, domains)
    whole = tests == "every-step"
    return Outcome(
        correct,
        alone=[
            _alone(untaught.with_parameters(), domain, samples[domain.name], tuned=tuned) if whole else None
            for domain in domains
        ],
        right=hits,
        class_correct={
            label: int(hit[domain.test_y == number].sum())
            for domain, hit in zip(domains, hits, strict=True)
            for number, label in enumerate(domain.labels)
        },
        calibration_error=calibration_error(
            np.concatenate([answer.chances(classifier.calibration_) for answer in answers]), np.concatenate(hits)
        ),
        class_shots=dict(zip(classifier.classes_.tolist(), classifier.counts_.tolist(), strict=True)),
        nbytes=classifier.nbytes_,
        gravity=_gravity(classifier, domains, answers) if whole and protocol != "MTIL" else None,
    )


def _learn_and_test(
    classifier: IncrementalClassifier,
    domains: Sequence[BenchDomain],
    samples: Mapping[str, SampleList],
    protocol: str,
    *,
    tuned: bool,
    tests: str,
) -> tuple[Counts, list[_Answers]]:
    """Return the right answers after each step, and all answers after the last."""
    early = protocol == "X-TAIL" and _announce(classifier, domains)
    correct: Counts = []
    answers: list[_Answers] = []
    for step, domain in enumerate(domains):
        learn_domain(classifier, domain, samples[domain.name])
        if tests == "last-step" and step + 1 < len(domains):
            correct.append([None] * len(domains))
            continue
        if tuned:
            classifier.tune()
        asked = domains if early else domains[: step + 1]
        answers = _ANSWERS[protocol](classifier, asked)
        correct.append([int(hit.sum()) for hit in _hits(answers, asked)] + [None] * (len(domains) - len(asked)))
    return correct, answers


def _gravity(
    classifier: IncrementalClassifier, domains: Sequence[BenchDomain], answers: Sequence[_Answers]
) -> Gravity | None:
    """Measure how often images of one domain are classified into another; None if the classifier knows one domain."""
    if len(set(classifier.domains_.tolist())) < 2:
        return None
    return measure(classifier, *queries_of(domains), answers=np.concatenate([answer.labels for answer in answers]))


def _alone(classifier: IncrementalClassifier, domain: BenchDomain, sample: SampleList, *, tuned: bool) -> int | None:
    """Return the right answers of a classifier that learns this domain alone; None if that is too little to tune by."""
    classes = len(set(sample.labels))
    if tuned and (classes < 2 or classes == len(sample.labels)):
        return None
    learn_domain(classifier, domain, sample)
    if tuned:
        classifier.tune()
    return int(_hits(_own_classes(classifier, [domain]), [domain])[0].sum())


def learn_domain(classifier: IncrementalClassifier, domain: BenchDomain, sample: SampleList) -> None:
    """Teach `classifier` the sampled images of a domain, in one call."""
    classifier.partial_fit(
        domain.train_x[list(sample.rows)],
        np.array(domain.labels)[list(sample.labels)],
        domain=domain.told or domain.name,
        text=domain.text_by_label(),
    )


def zero_shot_correct(domains: Sequence[BenchDomain]) -> list[int | None]:
    """Return CLIP's right answers on each domain, with all classes as candidates; None without text."""
    if not have_text(domains):
        return [None] * len(domains)
    classifier = ZeroShot()
    _announce(classifier, domains)
    return [int(hit.sum()) for hit in _hits(_all_classes(classifier, domains), domains)]


def _announce(classifier: IncrementalClassifier, domains: Sequence[BenchDomain]) -> bool:
    """Announce all classes, if the method can score a class by its text alone; return whether it can."""
    if not classifier.scores_announced or not have_text(domains):
        return False
    for domain in domains:
        classifier.announce(domain.text_by_label() or {}, domain=domain.name)
    return True


@dataclass(frozen=True, eq=False)
class _Answers:
    """The scores of the test images of a domain, and the candidates that are their columns."""

    scores: npt.NDArray[Any]
    candidates: npt.NDArray[Any]

    @property
    def labels(self) -> npt.NDArray[Any]:
        return self.candidates[self.scores.argmax(axis=1)]

    def chances(self, calibration: Calibration) -> Doubles:
        """Return the probability of each answer."""
        return calibration.probabilities(self.scores).max(axis=1)


def _hits(answers: Sequence[_Answers], domains: Sequence[BenchDomain]) -> list[npt.NDArray[np.bool_]]:
    """Return which answers are right, domain by domain."""
    pairs = zip(answers, domains, strict=True)
    return [np.asarray(answer.labels == np.array(domain.labels)[domain.test_y]) for answer, domain in pairs]


def _all_classes(classifier: IncrementalClassifier, domains: Sequence[BenchDomain]) -> list[_Answers]:
    queries, _ = queries_of(domains)
    ends = np.cumsum([len(domain.test_y) for domain in domains])[:-1]
    return [_Answers(part, classifier.classes_) for part in np.split(classifier.decision_function(queries), ends)]


def _own_classes(classifier: IncrementalClassifier, domains: Sequence[BenchDomain]) -> list[_Answers]:
    return [
        _Answers(classifier.decision_function(domain.test_x, classes=domain.labels), np.array(domain.labels))
        for domain in domains
    ]


_ANSWERS: Mapping[str, Callable[[Any, Sequence[BenchDomain]], list[_Answers]]] = {
    "CIL": _all_classes,
    "MTIL": _own_classes,
    "X-TAIL": _all_classes,
}
