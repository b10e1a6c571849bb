"""What a practitioner would pick instead: classifiers of scikit-learn on the same embeddings, beside HierarchicalHyCal.

Each is fitted on all samples of a setting at once, as there is no other way for most of them, and answers all test
images. C of the logistic regression and of the linear SVM is chosen by cross-validation on the samples, the ridge by
leave-one-out; nearest neighbours have five. One run is one seed of one setting: all classifiers in one process on one
core, so that their processor seconds can be compared. The linear SVM and the ridge classifier have no probabilities,
and so no calibration error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from hycal.bench import metrics
from hycal.bench.cells import Cell, manifest, pack_hits, read_manifest, unpack_hits
from hycal.bench.domains import BenchDomain, have_text, queries_of
from hycal.bench.methods import Variant
from hycal.bench.protocol import learn_domain
from hycal.bench.sampling import SampleList, draw_samples
from hycal.bench.settings import DEFAULT_ORDER, Setting
from hycal.errors import HyCalError
from hycal.storage.atomic import write_whole

PRACTICE = "practice"
FORMAT = 1
OURS = "HierarchicalHyCal"
_FOLDS = 3
_C = (1.0, 10.0, 100.0)


def _best_c(classifier: Any, folds: int) -> Any:
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    return GridSearchCV(classifier, {"C": _C}, cv=split)


#: Makes a classifier of scikit-learn, for cross-validation with a number of folds.
CLASSIFIERS: Mapping[str, Callable[[int], Any]] = {
    "logistic regression": lambda folds: _best_c(LogisticRegression(max_iter=1000), folds),
    "linear SVM": lambda folds: _best_c(LinearSVC(), folds),
    "ridge": lambda folds: RidgeClassifierCV(alphas=np.logspace(-3, 2, 11)),
    "5 nearest neighbours": lambda folds: KNeighborsClassifier(5, weights="distance"),
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """One classifier of one run: right answers by domain, calibration error, processor seconds to learn and answer."""

    right: tuple[npt.NDArray[np.bool_], ...]
    calibration_error: float
    learning: float
    answering: float

    @property
    def last(self) -> float:
        """Last accuracy: the mean over domains, in percent."""
        return 100.0 * float(np.mean([hits.mean() for hits in self.right]))


@dataclass(frozen=True, eq=False)
class PracticeRun:
    """One seed of one setting: every classifier by its name."""

    setting: str
    seed: int
    fitted: Mapping[str, Fitted]


def run_practice(setting: Setting, seed: int, embedded: Mapping[str, BenchDomain], out: Path) -> bool:
    """Run one seed of a setting and write its file; return whether it had to be run."""
    cell = Cell(setting, DEFAULT_ORDER, seed, Variant(OURS))
    domains = cell.domains(embedded)
    samples = draw_samples(setting, seed, {domain.name: domain.train_y for domain in domains})
    digests = {domain.name: domain.digest() for domain in domains}
    about = {**manifest(cell, domains, samples, digests), "practice": FORMAT}
    path = out / PRACTICE / f"{setting.label}.{seed}.json"
    if read_manifest(path) == about:
        return False
    with threadpool_limits(limits=1):
        fitted = {OURS: _fit_ours(cell, domains, samples), **_fit_theirs(domains, samples)}
    entries = {
        name: {
            "right": [pack_hits(hits) for hits in one.right],
            "calibration_error": None if np.isnan(one.calibration_error) else one.calibration_error,
            "learning": round(one.learning, 4),
            "answering": round(one.answering, 4),
        }
        for name, one in fitted.items()
    }
    asked = [len(domain.test_y) for domain in domains]
    document = {"manifest": about, "asked": asked, "fitted": entries}
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode())
    return True


def _fit_ours(cell: Cell, domains: Sequence[BenchDomain], samples: Mapping[str, SampleList]) -> Fitted:
    classifier = cell.variant.build(cell.setting, text=have_text(domains))
    began = time.process_time()
    for domain in domains:
        learn_domain(classifier, domain, samples[domain.name])
    classifier.predict_proba(domains[0].test_x[:1])
    learned = time.process_time()
    return _answered(classifier, domains, learned - began)


def _fit_theirs(domains: Sequence[BenchDomain], samples: Mapping[str, SampleList]) -> dict[str, Fitted]:
    X = np.concatenate([domain.train_x[list(samples[domain.name].rows)] for domain in domains])
    y = np.concatenate([np.array(domain.labels)[list(samples[domain.name].labels)] for domain in domains])
    folds = min(_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    if folds < 2:
        raise HyCalError("C is chosen by cross-validation, which takes two images of every class. Take more shots.")
    fitted = {}
    for name, make in CLASSIFIERS.items():
        classifier, began = make(folds), time.process_time()
        classifier.fit(X, y)
        fitted[name] = _answered(classifier, domains, time.process_time() - began)
    return fitted


def _answered(classifier: Any, domains: Sequence[BenchDomain], learning: float) -> Fitted:
    """Ask a fitted classifier for every test image: its probabilities, or its answers where it has none."""
    queries, truth = queries_of(domains)
    began, error = time.process_time(), float("nan")
    if hasattr(classifier, "predict_proba"):
        chances = classifier.predict_proba(queries)
        hits = classifier.classes_[chances.argmax(axis=1)] == truth
        answering = time.process_time() - began
        error = metrics.calibration_error(chances.max(axis=1), hits)
    else:
        hits = classifier.predict(queries) == truth
        answering = time.process_time() - began
    ends = np.cumsum([len(domain.test_y) for domain in domains])[:-1]
    return Fitted(tuple(np.split(hits, ends)), error, learning, answering)


def read_practice(folder: Path) -> tuple[PracticeRun, ...]:
    """Return every run below a folder of results, settings and seeds in order."""
    runs = [_read(path) for path in sorted((folder / PRACTICE).glob("[!.]*.json"))]
    return tuple(sorted(runs, key=lambda run: (run.setting, run.seed)))


def _read(path: Path) -> PracticeRun:
    try:
        document = json.loads(path.read_bytes())
        fitted = {
            name: Fitted(
                tuple(map(unpack_hits, one["right"], document["asked"])),
                float("nan") if one["calibration_error"] is None else float(one["calibration_error"]),
                float(one["learning"]),
                float(one["answering"]),
            )
            for name, one in document["fitted"].items()
        }
        return PracticeRun(document["manifest"]["setting"], document["manifest"]["seed"], fitted)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HyCalError(
            f"{path} is not a result of `hycal bench practice`: {error!r}. Delete it and run again."
        ) from None
