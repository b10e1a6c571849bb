"""Domain Gravity of a fitted model: its numbers, and how they relate."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.classifiers import NCM
from hycal.errors import HyCalError
from hycal.gravity.flow import DomainFlow, Drift, drift
from hycal.gravity.statistics import Relation, Variety, relate, variety
from hycal.state.records import Records
from hycal.validation import Doubles, Floats, check_labels, check_queries

#: The paper's claim about each pair: the sign of the correlation. Overrepresented and low-entropy domains pull,
#: underrepresented and high-entropy domains lose. A domain of many classes has many samples and takes many images by
#: chance. `pull` is corrected for chance, so it is compared with samples per class instead of sample share.
CLAIMS: Mapping[tuple[str, str], int] = {
    ("taken", "sample share"): +1,
    ("taken", "visual entropy"): -1,
    ("pull", "samples per class"): +1,
    ("pull", "visual entropy"): -1,
    ("loss", "sample share"): -1,
    ("loss", "visual entropy"): +1,
}


@dataclass(frozen=True, eq=False)
class Gravity:
    """How often images of one domain are classified into another, the effect on each domain, and its properties.

    Attributes
    ----------
    method : str
        The classifier, with the parameters that differ from its defaults.
    flow : DomainFlow
    classes, samples : ndarray of shape (T,)
        Classes of each domain, and images learned of it.
    varieties : tuple of Variety
        Entropy and spread of what was learned of each domain.
    drifts : tuple of Drift

    Examples
    --------
    >>> from hycal import NCM
    >>> classifier = NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["pet/cat", "tree/oak"])
    >>> measure(classifier, [[0.9, 0.1], [0.1, 0.9]], ["pet/cat", "tree/oak"]).domains
    ('pet', 'tree')
    """

    method: str
    flow: DomainFlow
    classes: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    varieties: tuple[Variety, ...]
    drifts: tuple[Drift, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """Names, in the order of every array."""
        return self.flow.domains

    @property
    def pull(self) -> Doubles:
        """Excess share of the images that crossed, over the domain's share of the classes; see `DomainFlow.pull`."""
        return self.flow.pull(self.classes)

    @property
    def columns(self) -> Mapping[str, Doubles]:
        """Quantities of the domains that relations compare, by name."""
        return {
            "taken": self.flow.taken,
            "pull": self.pull,
            "loss": self.flow.loss,
            "sample share": np.asarray(self.samples / max(1, int(self.samples.sum())), dtype=np.float64),
            "samples per class": np.asarray(self.samples / self.classes, dtype=np.float64),
            "visual entropy": np.array([variety.entropy for variety in self.varieties]),
        }

    @property
    def relations(self) -> Mapping[tuple[str, str], Relation]:
        """Correlation of every pair in `CLAIMS`."""
        columns = self.columns
        return {pair: relate(columns[pair[0]], columns[pair[1]]) for pair in CLAIMS}

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values; NaN is null. `from_json` reads it back."""
        derived = {
            "rates": self.flow.rates.tolist(),
            "inflow": self.flow.inflow.tolist(),
            "outflow": self.flow.outflow.tolist(),
            "net": self.flow.net.tolist(),
            **{name: column.tolist() for name, column in self.columns.items()},
            "relations": [
                {"of": of, "against": against, "claimed_sign": CLAIMS[of, against], **asdict(relation)}
                for (of, against), relation in self.relations.items()
            ],
        }
        return _without_nan(
            {
                "method": self.method,
                "domains": list(self.domains),
                "flow": self.flow.counts.tolist(),
                "classes": self.classes.tolist(),
                "samples": self.samples.tolist(),
                "varieties": [asdict(variety) for variety in self.varieties],
                "drifts": [asdict(drift) for drift in self.drifts],
                "derived": derived,
            }
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the gravity that `as_json` wrote."""

        def numbers(entry: Mapping[str, float | None]) -> dict[str, float]:
            return {name: np.nan if value is None else value for name, value in entry.items()}

        return cls(
            method=document["method"],
            flow=DomainFlow(tuple(document["domains"]), np.array(document["flow"], dtype=np.int64)),
            classes=np.array(document["classes"], dtype=np.int64),
            samples=np.array(document["samples"], dtype=np.int64),
            varieties=tuple(Variety(**numbers(entry)) for entry in document["varieties"]),
            drifts=tuple(Drift(**numbers(entry)) for entry in document["drifts"]),
        )


def measure(classifier: IncrementalClassifier, X: npt.ArrayLike, y: Any, *, answers: Any = None) -> Gravity:
    """Measure the gravity of a fitted classifier on labelled embeddings that it did not learn.

    Parameters
    ----------
    classifier : IncrementalClassifier
        With classes of at least two domains. The domain of a class without a named one is the part of its label before
        the first slash. The classifier is not changed.
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
        Labels of learned classes.
    answers : array-like of shape (n,), optional
        The predictions of the classifier for X, if they are known already.

    Examples
    --------
    >>> from hycal import NCM
    >>> clf = NCM().fit([[1, 0, 0], [0, 1, 0]], ["a", "b"], domain="letters")
    >>> clf = clf.partial_fit([[0, 0, 1]], ["1"], domain="digits")
    >>> measure(clf, [[1, 0.1, 0], [0, 1, 2]], ["a", "b"]).flow.counts.tolist()
    [[0, 0], [1, 1]]
    """
    records = classifier.records_
    rows = check_queries(X, width=records.width, owner="gravity")
    labels = np.array(check_labels(y, rows=len(rows)))
    given = classifier.predict(rows) if answers is None else np.array(check_labels(answers, rows=len(rows)))
    flow = _flow(classifier, labels, given)
    of_class = class_domains(classifier)
    truth = of_class[records.columns(labels)]
    mine = {domain: of_class == domain for domain in flow.domains}
    return Gravity(
        method=described(classifier),
        flow=flow,
        classes=np.array([own.sum() for own in mine.values()], dtype=np.int64),
        samples=np.array([records.counts[own].sum() for own in mine.values()], dtype=np.int64),
        varieties=tuple(variety(_learned(records, own)) for own in mine.values()),
        drifts=tuple(
            drift(classifier, rows[asked], labels[asked], given[asked], own)
            for asked, own in ((truth == domain, own) for domain, own in mine.items())
        ),
    )


def domain_flow(classifier: IncrementalClassifier, X: npt.ArrayLike, y: Any) -> DomainFlow:
    """Return the flow alone, which costs one prediction. Parameters as `measure`.

    Examples
    --------
    >>> from hycal import NCM
    >>> classifier = NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["pet/cat", "tree/oak"])
    >>> domain_flow(classifier, [[0.9, 0.1], [0.8, 0.2]], ["pet/cat", "tree/oak"]).counts
    array([[1, 0],
           [1, 0]])
    """
    rows = check_queries(X, width=classifier.records_.width, owner="gravity")
    return _flow(classifier, np.array(check_labels(y, rows=len(rows))), classifier.predict(rows))


def _flow(classifier: IncrementalClassifier, labels: npt.NDArray[Any], answers: npt.NDArray[Any]) -> DomainFlow:
    records, of_class = classifier.records_, class_domains(classifier)
    domains = tuple(sorted(set(of_class.tolist())))
    if len(domains) < 2:
        raise HyCalError(
            f"Every class of the model is of one domain, {domains[0]!r}; gravity needs two at least. Learn with "
            'domain="NAME", or name classes DOMAIN/CLASS.'
        )
    truth, given = (of_class[records.columns(side)] for side in (labels, answers))
    return DomainFlow.of(truth.tolist(), given.tolist(), domains)


def pooled(gravities: Sequence[Gravity]) -> Gravity:
    """Return measurements of the same classes, such as one for each seed, as one: flows summed, the rest means.

    Examples
    --------
    >>> from hycal import NCM
    >>> classifier = NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["pet/cat", "tree/oak"])
    >>> once = measure(classifier, [[0.9, 0.1]], ["pet/cat"])
    >>> pooled([once, once]).flow.counts[0]
    array([2, 0])
    """
    first = gravities[0]
    varieties = zip(*(one.varieties for one in gravities), strict=True)
    drifts = zip(*(one.drifts for one in gravities), strict=True)
    return replace(
        first,
        flow=DomainFlow(first.domains, np.sum([one.flow.counts for one in gravities], axis=0)),
        samples=np.rint(np.mean([one.samples for one in gravities], axis=0)).astype(np.int64),
        varieties=tuple(Variety(*_means(entries)) for entries in varieties),
        drifts=tuple(Drift(*_means(entries)) for entries in drifts),
    )


def _means(entries: Sequence[Variety] | Sequence[Drift]) -> list[float]:
    return [float(value) for value in np.mean([astuple(entry) for entry in entries], axis=0)]


def _learned(records: Records, own: npt.NDArray[np.bool_]) -> Floats:
    """Return every sample of the classes `own`."""
    records.check_samples("measure what pulls at its learned images")
    return np.concatenate([records.ordered[at].samples.rows for at in np.flatnonzero(own)])


def class_domains(classifier: IncrementalClassifier) -> npt.NDArray[Any]:
    """Return the domain of each class: the named one, or the part of the label before the first slash."""
    named = zip(classifier.domains_.tolist(), classifier.classes_.tolist(), strict=True)
    return np.array([domain or (str(label).partition("/")[0] if "/" in str(label) else "") for domain, label in named])


def uncalibrated(classifier: IncrementalClassifier) -> IncrementalClassifier:
    """Return a model of the same samples that scores classes by direction alone: the state before calibration.

    That is the method with the parameters of `direction_only`, or the nearest class mean.

    Examples
    --------
    >>> from hycal import HyCal
    >>> classifier = HyCal(fusion="image").fit([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> uncalibrated(classifier).metric
    'cosine'
    """
    if classifier.direction_only is not None:
        plain = copy.copy(classifier)
        return plain.set_params(**classifier.direction_only)
    mean = NCM().with_records(classifier.records_.with_memo({}))
    mean.encoder_ = classifier.encoder_
    return mean


def measure_calibration(classifier: IncrementalClassifier, X: npt.ArrayLike, y: Any) -> dict[str, Gravity]:
    """Return the gravity of a model "after" calibration, and "before" it where that is another model.

    Parameters as `measure`. A model with a class without samples has no state before calibration, since that class has
    no mean direction.

    Examples
    --------
    >>> from hycal import HyCal
    >>> classifier = HyCal(fusion="image").fit([[1.0, 0.0], [0.0, 1.0]], ["pet/cat", "tree/oak"])
    >>> sorted(measure_calibration(classifier, [[0.9, 0.1]], ["pet/cat"]))
    ['after', 'before']
    """
    after = measure(classifier, X, y)
    if not classifier.counts_.all():
        return {"after": after}
    before = measure(uncalibrated(classifier), X, y)
    return {"after": after} if before.method == after.method else {"before": before, "after": after}


def described(classifier: IncrementalClassifier) -> str:
    """Return the method with the parameters that differ from its defaults, as the benchmark writes variants."""
    defaults = type(classifier)().get_params(deep=False)
    changed = {name: value for name, value in classifier.get_params(deep=False).items() if value != defaults[name]}
    listed = ",".join(f"{name}={value}" for name, value in sorted(changed.items()))
    return type(classifier).__name__ + (f"[{listed}]" if listed else "")


def _without_nan(value: Any) -> Any:
    """Return `value` with None for every NaN: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and np.isnan(value) else value
