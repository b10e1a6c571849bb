"""Several encoders at once, against one: python -m benchmarks.views [--rows ENCODER=FOLDER]

HierarchicalHyCal learns 2, 5 and 15 images of each class of the eight disciplines of the package, and the images of
the three settings of the benchmark: by CLIP, the built-in encoder and DINOv2-S alone, by two and three of them as
views, and by CLIP with a view of noise. Printed are accuracies by discipline, the gain over CLIP, the least distance of
a discipline to the best of the single encoders, the calibration error, the processor time of learning against the sum
of the single encoders, the weights found, and the gain with weights that are fitted to the queries, which bounds it.
`--rows` adds rows of an encoder that the package has not; `--kept` keeps what was measured in a JSON file and reads it
from there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.domains import Domain, learn_in_order
from benchmarks.hierarchical_streams import SEEDS, CellCache
from benchmarks.printed import PrintedTable
from hycal import HierarchicalHyCal
from hycal.base import IncrementalClassifier
from hycal.bench.domains import read_domain
from hycal.bench.metrics import calibration_error
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import load_setting
from hycal.data.bundled import load_xd8, xd8_encoders
from hycal.data.embedded import EmbeddedDomain
from hycal.uncertainty.temperature import Penalty, fit_weights
from hycal.validation import Floats, unit_rows

CLIP = "clip-vit-b16-w8"
NOISE = "noise"
SHOTS = (2, 5, 15)
SETTINGS = ("balanced", "cross-scale", "high-scale")
#: What is learned: the views side by side, and what they are compared with.
MODELS: Mapping[str, tuple[str, ...]] = {
    "CLIP": (CLIP,),
    "built-in": ("builtin",),
    "DINOv2-S": ("dinov2-s",),
    "CLIP + built-in": (CLIP, "builtin"),
    "CLIP + built-in + DINOv2-S": (CLIP, "builtin", "dinov2-s"),
    "CLIP + noise": (CLIP, NOISE),
}
_NOISE_WIDTH = 384
_WEAK = 0.1  # nats: a penalty that only keeps weights finite
_OPTIMUM, _ACCURACIES = 2, 3  # places in a cell


class Views:
    """The bundled rows of each encoder, and noise as a view."""

    def __init__(self, folders: Mapping[str, Path], wanted: Sequence[str]) -> None:
        self.first = {name: domain for name, domain in load_xd8().items() if name in wanted or not wanted}
        self.rows: dict[str, Mapping[str, EmbeddedDomain]] = {name: load_xd8((name,)) for name in xd8_encoders()}
        for encoder, folder in folders.items():
            self.rows[encoder] = {name: read_domain(folder, name) for name in self.first}

    def side_by_side(self, names: Sequence[str], domain: str, split: str, seed: int) -> Floats:
        """Return the rows of a split by some encoders."""
        return np.hstack([self._part(name, domain, split, seed) for name in names])

    def _part(self, name: str, domain: str, split: str, seed: int) -> Floats:
        if name != NOISE:
            return getattr(self.rows[name][domain], split)
        size = len(getattr(self.first[domain], split))
        rng = np.random.default_rng([seed, *domain.encode(), *split.encode()])
        return unit_rows(rng.normal(size=(size, _NOISE_WIDTH)))


def drawn(views: Views, column: str, seed: int) -> dict[str, list[int]]:
    """Return the training rows of each domain: so many shots of each class, or those of a setting."""
    if column in SETTINGS:
        setting = load_setting(f"xd8-{column}")
        samples = draw_samples(setting, seed, {name: domain.train_y for name, domain in load_xd8().items()})
        return {name: list(samples[name].rows) for name in views.first}
    found = {}
    for name, domain in views.first.items():
        rng = np.random.default_rng([seed, *name.encode()])
        classes = range(len(domain.class_names))
        chosen = [rng.permutation(np.flatnonzero(domain.train_y == label))[: int(column)] for label in classes]
        found[name] = np.concatenate(chosen).tolist()
    return found


def domains(views: Views, names: Sequence[str], rows: Mapping[str, list[int]], seed: int) -> list[Domain]:
    """Return the domains as views of these encoders see them."""
    found = []
    for name, domain in views.first.items():
        labels = np.array([f"{name}/{label}" for label in domain.class_names])
        train, test = (views.side_by_side(names, name, split, seed) for split in ("train_x", "test_x"))
        found.append(
            Domain(name, train[rows[name]], labels[domain.train_y[rows[name]]], test, labels[domain.test_y], None)
        )
    return found


def measured(views: Views, names: Sequence[str], column: str, seed: int) -> list[float]:
    """Return processor seconds, calibration error, the optimum, the accuracy of each domain, and the weights found."""
    asked = domains(views, names, drawn(views, column, seed), seed)
    widths = tuple(_NOISE_WIDTH if name == NOISE else _width(views, name) for name in names)
    start = time.process_time()
    model = learn_in_order(HierarchicalHyCal(views=widths if len(names) > 1 else None), asked)
    model.predict(asked[0].queries[:1])
    seconds = time.process_time() - start
    hits, chances = [], []
    for domain in asked:
        found = model.predict_proba(domain.queries)
        hits.append(model.classes_[found.argmax(axis=1)] == domain.answers)
        chances.append(found.max(axis=1))
    weights = model.view_weights_.ravel().tolist() if len(names) > 1 else []
    error = calibration_error(np.concatenate(chances), np.concatenate(hits))
    accuracies = [100.0 * float(np.mean(hit)) for hit in hits]
    best = optimum(model, asked) if len(names) > 1 else float(np.mean(accuracies))
    return [seconds, error, best, *accuracies, *weights]


def optimum(model: IncrementalClassifier, asked: Sequence[Domain]) -> float:
    """Return the mean accuracy with weights of views that make the queries themselves most likely: a bound."""
    derived, hits = model.snapshot().value, []
    for number, (columns, domain) in enumerate(zip(derived.groups.columns, asked, strict=True)):
        X = model.check_queries(domain.queries)
        has = derived.present(X)
        D, W = derived.evidence(has, derived.scores_by_view(X, has))
        own = np.searchsorted(model.classes_, domain.answers)
        classes = derived.sharpened.classes.copy()
        centre = Penalty(np.full(len(W), 1.0 / len(W)), _WEAK)
        classes[number] = fit_weights(W[:, :, columns], np.searchsorted(columns, own), centre)
        scores = derived.combined(replace(derived.sharpened, classes=classes), has, D, W)
        hits.append(100.0 * float(np.mean(scores.argmax(axis=1) == own)))
    return float(np.mean(hits))


def _width(views: Views, name: str) -> int:
    return next(iter(views.rows[name].values())).train_x.shape[1]


Cells = Mapping[tuple[str, str], npt.NDArray[np.float64]]  # (seeds, numbers) by model and column


def main() -> None:
    """Measure what is not kept, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--columns", nargs="+", default=[*map(str, SHOTS), *SETTINGS], help="shots, or settings")
    parser.add_argument("--kept", type=Path, default=Path("results/views.json"), help="file of measured cells")
    parser.add_argument("--rows", nargs="+", default=[], help="ENCODER=FOLDER with DOMAIN.npz: rows of the same images")
    parser.add_argument("--domains", nargs="+", default=[], help="some disciplines; all by default")
    options = parser.parse_args()
    folders = {encoder: Path(folder) for encoder, folder in (given.split("=", 1) for given in options.rows)}
    views, kept = Views(folders, options.domains), CellCache(options.kept)
    known = {model: names for model, names in MODELS.items() if all(n in views.rows or n == NOISE for n in names)}

    def cell(model: str, column: str, seed: int) -> list[float]:
        return kept(
            ", ".join([model, column, str(seed), *options.domains]), lambda: measured(views, known[model], column, seed)
        )

    cells = {
        (model, column): np.array([cell(model, column, seed) for seed in options.seeds])
        for column in options.columns
        for model in known
    }
    names = list(views.first)
    for column in options.columns:
        print_column(cells, known, column, names)
    print_means(cells, known, options.columns, names)
    print_gains(cells, known, options.columns, names)
    print_weights(cells, known, options.columns, names)


def accuracy(cell: npt.NDArray[np.float64], names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the accuracies of a cell, (seeds, domains)."""
    return cell[:, _ACCURACIES : _ACCURACIES + len(names)]


def print_column(cells: Cells, models: Mapping[str, tuple[str, ...]], column: str, names: Sequence[str]) -> None:
    """Print the table of some shots, or of a setting."""
    _print_against_singles(cells, models, [column], names, f"{column}{' shots' if column.isdigit() else ''}")


def print_means(
    cells: Cells, models: Mapping[str, tuple[str, ...]], columns: Sequence[str], names: Sequence[str]
) -> None:
    """Print the table of all columns together."""
    _print_against_singles(cells, models, columns, names, "Mean of the columns")


def _print_against_singles(
    cells: Cells, models: Mapping[str, tuple[str, ...]], columns: Sequence[str], names: Sequence[str], title: str
) -> None:
    """Print means of some columns: accuracies, the gain over CLIP, and the least distance to the best encoder alone.

    Then the calibration error, and the time to learn over that of the single encoders.
    """
    table = PrintedTable(title, "model", *names, "mean", "gain", "to best single", "ECE", "time")
    together = {model: np.concatenate([cells[model, column] for column in columns]) for model in models}
    found = {model: accuracy(cell, names).mean(axis=0) for model, cell in together.items()}
    seconds = {model: float(cell[:, 0].sum()) for model, cell in together.items()}
    for model, encoders in models.items():
        singles = [one for one, parts in models.items() if len(parts) == 1 and parts[0] in encoders]
        own, best = found[model], np.max([found[one] for one in singles], axis=0)
        gains = f"{own.mean():.2f}", f"{own.mean() - found['CLIP'].mean():+.2f}", f"{(own - best).min():+.1f}"
        ratio = seconds[model] / sum(seconds[one] for one in singles)
        error = float(together[model][:, 1].mean())
        table.row(model, *(f"{value:.1f}" for value in own), *gains, f"{error:.2f}", f"{ratio:.2f}")


def print_gains(
    cells: Cells, models: Mapping[str, tuple[str, ...]], columns: Sequence[str], names: Sequence[str]
) -> None:
    """Print how far models of several views are above CLIP, and would be with weights fitted to the queries."""
    table = PrintedTable("Gain over CLIP", "model", *columns, "mean")
    for model in (model for model, encoders in models.items() if len(encoders) > 1):
        for what, place in ("", None), (", weights fitted to the queries", _OPTIMUM):
            gains = []
            for column in columns:
                cell = cells[model, column]
                found = accuracy(cell, names) if place is None else cell[:, place]
                gains.append(found.mean() - accuracy(cells["CLIP", column], names).mean())
            table.row(f"{model}{what}", *(f"{gain:+.2f}" for gain in (*gains, np.mean(gains))))


def print_weights(
    cells: Cells, models: Mapping[str, tuple[str, ...]], columns: Sequence[str], names: Sequence[str]
) -> None:
    """Print the weights found, the mean of all seeds: of each view in each domain."""
    table = PrintedTable("Weights of views", "model", "column", *names)
    for model, parts in models.items():
        for column in columns if len(parts) > 1 else ():
            found = cells[model, column][:, _ACCURACIES + len(names) :].mean(axis=0).reshape(len(names), len(parts))
            table.row(model, column, *(" / ".join(f"{weight:.2f}" for weight in row) for row in found))


if __name__ == "__main__":
    main()
