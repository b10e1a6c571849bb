"""HierarchicalHyCal beside every other method, defaults only: python -m benchmarks.hierarchical.

Tables: accuracy after the last step and calibration error on five real domains (balanced, cross-scale and high-scale
shots, four seeds, images alone), the same on the bundled xd8 embeddings, cars with text, pixels, rejection of unknown
classes and domains, the cost beside HyCal, tuning, what each part adds, and the data on which constants were fixed.
Every row of the accuracy tables and of the ablation is kept in --out, so a run that was stopped goes on; --queries asks
fewer of each domain.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from scipy.stats import rankdata

from benchmarks.domains import Domain
from benchmarks.hierarchical_ablation import ablation_table
from benchmarks.hierarchical_development import development_table
from benchmarks.hierarchical_streams import (
    METHODS,
    SEEDS,
    SHOTS,
    TEXT,
    CellCache,
    cars,
    digits,
    five_domains,
    learned,
    measured,
    xd8,
)
from hycal import HierarchicalHyCal
from hycal.base import IncrementalClassifier
from hycal.validation import Doubles


def auroc(known: npt.ArrayLike, unknown: npt.ArrayLike) -> float:
    """Return how often, in percent, a known query scores above an unknown one; ties count half.

    >>> auroc([3.0, 2.0], [1.0, 2.0])
    87.5
    """
    above, below = (np.asarray(values, dtype=np.float64) for values in (known, unknown))
    ranks = rankdata(np.concatenate([above, below]))[: len(above)]
    return float(100.0 * (ranks.sum() - len(above) * (len(above) + 1) / 2) / (len(above) * len(below)))


def false_positives(known: npt.ArrayLike, unknown: npt.ArrayLike, kept: float = 0.95) -> float:
    """Return the share of unknown queries, in percent, accepted at the threshold that accepts `kept` of the known.

    >>> false_positives([3.0, 2.0, 4.0], [1.0, 2.5], kept=1.0)
    50.0
    """
    threshold = np.quantile(np.asarray(known, dtype=np.float64), 1.0 - kept)
    return float(100.0 * np.mean(np.asarray(unknown, dtype=np.float64) >= threshold))


def accuracy_table(
    title: str, domains: Callable[[str, int], list[Domain]], kept: CellCache, rows: Sequence[str]
) -> None:
    """Print accuracy after the last step and calibration error of every method, means over seeds."""
    print(f"\n{title}: accuracy after the last step, and calibration error, means of seeds {SEEDS}")
    print(f"{'':18}" + "".join(f"{setting:>14}{'ECE':>7}" for setting in SHOTS), flush=True)
    for name in rows:
        cells = []
        for setting in SHOTS:
            found = [
                kept(f"{title}/{name}/{setting}/{seed}", partial(_cell, name, partial(domains, setting, seed)))
                for seed in SEEDS
            ]
            cells += np.mean(found, axis=0).tolist()
        print(
            f"{name:18}" + "".join(f"{a:14.1f}{e:7.1f}" for a, e in zip(cells[::2], cells[1::2], strict=True)),
            flush=True,
        )


def _cell(name: str, draw: Callable[[], list[Domain]]) -> tuple[float, float]:
    domains = draw()
    return measured(learned(METHODS[name], domains), domains)


def text_table() -> None:
    """Print accuracy on cars with text, the first shots of each class."""
    shots = (2, 5, 10, 16)
    print("\ncars with text, the first shots of each class: accuracy")
    print(f"{'':18}" + "".join(f"{k:>8}" for k in shots), flush=True)
    cells = {k: cars(k) for k in shots}
    for name, method in TEXT.items():
        print(f"{name:18}" + "".join(f"{d.accuracy(learned(method, [d])):8.1f}" for d in cells.values()), flush=True)


def pixels_table() -> None:
    """Print accuracy on pixels instead of embeddings: few dimensions, many images of each class, one domain."""
    shots = (5, 10, 30)
    print("\npixels of scikit-learn's digits, the first shots of each class: accuracy")
    print(f"{'':18}" + "".join(f"{k:>8}" for k in shots), flush=True)
    cells = [digits(k) for k in shots]
    for name in ("HierarchicalHyCal", "HyCal", "NCM", "SLDA", "GDA", "FeCAM", "DualRAIL"):
        print(f"{name:18}" + "".join(f"{d.accuracy(learned(METHODS[name], [d])):8.1f}" for d in cells), flush=True)


def rejection_scores(classifier: IncrementalClassifier, domains: Sequence[Domain], X: Doubles) -> dict[str, Doubles]:
    """Return how known queries look, by our measure and by the alternatives, all for one and the same model."""
    samples = np.concatenate([domain.X for domain in domains])
    y = np.unique(np.concatenate([domain.y for domain in domains]), return_inverse=True)[1]
    means = np.stack([samples[y == label].mean(axis=0) for label in range(y.max() + 1)]).astype(np.float64)
    gaps, spread = samples - means[y], samples - samples.mean(axis=0)
    ridge = 0.05 * np.sum(gaps**2) / len(gaps) / samples.shape[1] * np.eye(samples.shape[1])
    within, total = (np.linalg.inv(Z.T @ Z / len(Z) + ridge) for Z in (gaps, spread))
    to_class = np.min(
        np.einsum("nd,nd->n", X @ within, X)[:, None]
        - 2 * X @ within @ means.T
        + np.sum(means @ within * means, axis=1),
        axis=1,
    )
    Y = X - samples.mean(axis=0)
    logits = learned(METHODS["GDA"], domains).decision_function(X)
    return {
        "familiarity (ours)": classifier.familiarity(X),
        "maximum softmax": classifier.predict_proba(X).max(axis=1),
        "energy": logsumexp(0.1 * logits, axis=1),
        "nearest neighbour": np.max(X @ samples.T, axis=1),
        "relative Mahalanobis": np.einsum("nd,nd->n", Y @ total, Y) - to_class,
    }


def rejection_table(queries: int) -> None:
    """Print how well unknown classes and unknown domains are told from known ones."""
    print("\nRejection: AUROC / FPR at 95%, known against unknown test images, means over three seeds")
    cases: dict[str, list[dict[str, tuple[float, float]]]] = {}
    for seed in SEEDS[:3]:
        for source, domains in (
            ("five", five_domains("cross-scale", seed, queries)),
            ("xd8", xd8("cross-scale", seed)),
        ):
            rng = np.random.default_rng(seed)
            labels = [np.unique(domain.y) for domain in domains]
            half = set(np.concatenate([rng.permutation(names)[: len(names) // 2] for names in labels]).tolist())
            cases.setdefault(f"{source}, classes", []).append(_rejection(domains, half))
            held = domains[int(rng.integers(len(domains)))].name
            rest = {label for domain in domains if domain.name != held for label in domain.y.tolist()}
            cases.setdefault(f"{source}, domains", []).append(_rejection(domains, rest))
    measures = list(next(iter(cases.values()))[0])
    print(f"{'':22}" + "".join(f"{case:>17}" for case in [*cases, "mean"]), flush=True)
    for measure in measures:
        pairs = [np.mean([run[measure] for run in runs], axis=0) for runs in cases.values()]
        pairs.append(np.mean(pairs, axis=0))
        print(f"{measure:22}" + "".join(f"{f'{a:.1f} / {b:.1f}':>17}" for a, b in pairs), flush=True)


def _rejection(domains: Sequence[Domain], known: set[str]) -> dict[str, tuple[float, float]]:
    kept = [
        Domain(d.name, d.X[rows], d.y[rows], d.queries, d.answers, None)
        for d in domains
        if (rows := np.flatnonzero(np.isin(d.y, list(known)))).size
    ]
    X = np.concatenate([domain.queries for domain in domains]).astype(np.float64)
    inside = np.isin(np.concatenate([domain.answers for domain in domains]), list(known))
    scores = rejection_scores(learned(HierarchicalHyCal, kept), kept, X)
    return {
        name: (auroc(score[inside], score[~inside]), false_positives(score[inside], score[~inside]))
        for name, score in scores.items()
    }


def cost_table() -> None:
    """Print the processor time of learning and scoring beside HyCal, the best of three runs each in turn."""
    for setting in SHOTS:
        print(f"\nCost beside HyCal on the {setting} stream: seconds of processors, best of three, and the ratio")
        domains = five_domains(setting, 0, 800)
        X = np.concatenate([domain.queries for domain in domains])
        best: dict[str, Doubles] = {}
        for name in ("HyCal", "HierarchicalHyCal", "domains found") * 3:
            start = time.process_time()
            classifier = learned(METHODS[name], domains)
            classifier.predict(X[:1])
            middle = time.process_time()
            classifier.decision_function(X)
            took = np.array([middle - start, time.process_time() - middle])
            best[name] = np.minimum(best.get(name, took), took)
        for name, (learn, ask) in best.items():
            more, slower = (learn, ask) / best["HyCal"]
            print(
                f"{name:18} learn {learn:.3f} s ({more:.1f}x), {len(X)} queries {ask:.3f} s ({slower:.1f}x)", flush=True
            )


def tuning_table(queries: int, rows: Sequence[str]) -> None:
    """Print what `tune()` takes and changes on the balanced stream of the five domains, seed 0."""
    domains = five_domains("balanced", 0, queries)
    samples = sum(len(domain.y) for domain in domains)
    print(f"\nTuning by {samples} samples of five domains: accuracy and calibration error, seconds (of processors)")
    print(f"{'':18}{'default':>9}{'ECE':>6}{'tuned':>8}{'ECE':>6}{'seconds':>12}  chosen", flush=True)
    for name in rows:
        classifier = learned(METHODS[name], domains)
        default, before = measured(classifier, domains), classifier.get_params()
        start = time.perf_counter(), time.process_time()
        classifier.tune()
        seconds, busy = time.perf_counter() - start[0], time.process_time() - start[1]
        tuned = measured(classifier, domains)
        changed = {key: value for key, value in classifier.get_params().items() if value != before[key]}
        print(
            f"{name:18}{default[0]:9.1f}{default[1]:6.1f}{tuned[0]:8.1f}{tuned[1]:6.1f}"
            f"{f'{seconds:.1f} ({busy:.1f})':>12}  " + ", ".join(f"{key} {value}" for key, value in changed.items()),
            flush=True,
        )


_TABLES = ("five", "xd8", "text", "pixels", "rejection", "cost", "tune", "ablation", "development")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/hierarchical.json"))
    parser.add_argument("--only", nargs="*", choices=list(_TABLES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--queries", type=int, default=800, help="of each of the five domains, evenly spaced")
    options = parser.parse_args()
    kept, queries = CellCache(options.out), options.queries
    tables: Mapping[str, Callable[[], None]] = {
        "five": lambda: accuracy_table(
            f"Five domains of {queries} queries", lambda s, k: five_domains(s, k, queries), kept, options.methods
        ),
        "xd8": lambda: accuracy_table("xd8", xd8, kept, options.methods),
        "text": text_table,
        "pixels": pixels_table,
        "rejection": lambda: rejection_table(queries // 2),
        "cost": cost_table,
        "tune": lambda: tuning_table(queries, options.methods),
        "ablation": lambda: ablation_table(queries, kept),
        "development": development_table,
    }
    for name in options.only or _TABLES:
        tables[name]()


if __name__ == "__main__":
    main()
