"""The paper's theory, checked by simulation and on real embeddings: python -m benchmarks.theory.

Prints the tables of docs/explanation/theory.md and writes its figures, docs/images/theory-*.svg.
C is the cosine of a query and a class mean, M the Mahalanobis distance to the class, L whether the query is of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from benchmarks.domains import ROOT, Domain, all_queries, disciplines, missing, stream
from benchmarks.gravity import learned
from benchmarks.information import between, between_given, with_label
from benchmarks.printed import PrintedTable
from hycal import HyCal
from hycal.algebra.bank import GaussianBank
from hycal.algebra.fusion import FUSIONS
from hycal.algebra.gaussians import GaussianOptions
from hycal.algebra.scores import standardise
from hycal.gravity.drawing import COLOURS, drawing
from hycal.validation import Doubles

SHOTS = (2, 4, 8, 16)
_GREY = "#6e7781"  # legible on a light and on a dark page: an image file cannot ask which it is on
PAPER = GaussianOptions(FUSIONS["image"], a=1 - 1e-4, delta=1e-4)  # HyCal's covariance by default: lambda 1e-4, gamma 1
Evidence = tuple[npt.NDArray[np.bool_], Doubles, Doubles, Doubles]


def directions_and_norms(n: int, d: int, *, seed: int, stretch: float = 1.0) -> tuple[Doubles, Doubles]:
    """Draw n Gaussian vectors, isotropic but for a stretched first axis; return norms and first coordinates of U."""
    delta = np.random.default_rng(seed).normal(size=(n, d))
    delta[:, 0] *= stretch
    norms: Doubles = np.linalg.norm(delta, axis=1)
    return norms, delta[:, 0] / norms


def noisy_pairs(n: int, d: int, *, noise: float, seed: int, unit: bool = False) -> tuple[Doubles, Doubles]:
    """Draw X = Y + Delta around a unit Y, Delta isotropic of mean square length noise^2; return C and M.

    With `unit` X is scaled to length one, as embeddings are.
    """
    sigma = noise / np.sqrt(d)
    X = sigma * np.random.default_rng(seed).normal(size=(n, d))
    X[:, 0] += 1.0  # Y is the first axis
    cosine: Doubles = X[:, 0] / np.linalg.norm(X, axis=1)
    if unit:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[:, 0] -= 1.0
    return cosine, np.linalg.norm(X, axis=1) / sigma


def evidence(domains: Sequence[Domain], shots: int, seed: int, against: str, *, normalised: bool) -> Evidence:
    """Return L, C, M and HyCal's score of each query with its class, and with one wrong class.

    Parameters
    ----------
    domains : sequence of Domain
    shots, seed : int
        Images learned of each class, and which.
    against : {"any", "domain", "rival"}
        The wrong class: drawn from all, drawn from the query's domain, or the one that HyCal prefers.
    normalised : bool
        Whether C and -M are z-scored over the candidates of each query, as HyCal does before it blends them.
    """
    model = learned(lambda: HyCal(fusion="image"), domains, {domain.name: shots for domain in domains}, seed)
    X, y = all_queries(domains)
    bank = GaussianBank.build(model.records_.ordered, PAPER)
    cosines, closeness = (np.empty((len(X), len(model.classes_)), np.float32) for _ in range(2))
    cosines[:, bank.order], closeness[:, bank.order] = (part.T for part in bank.evaluate(X))
    score = model.decision_function(X)
    rows, true = np.arange(len(X)), np.searchsorted(model.classes_, y)
    wrong = _WRONG[against](score, true, model.domains_, np.random.default_rng(seed))
    if normalised:
        cosines, closeness = standardise(cosines.T.copy()).T, standardise(closeness.T.copy()).T
    columns = [np.concatenate([part[rows, true], part[rows, wrong]]) for part in (cosines, -closeness, score)]
    C, M, blended = (column.astype(np.float64) for column in columns)
    return np.repeat([True, False], len(X)), C, M, blended


def _drawn(allowed: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    return np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=1)


def _rival(score: Doubles, true: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    masked = score.copy()
    masked[np.arange(len(true)), true] = -np.inf
    return masked.argmax(axis=1)


_WRONG: Mapping[str, Callable[..., npt.NDArray[np.intp]]] = {
    "any": lambda score, true, domains, rng: _drawn(np.arange(score.shape[1]) != true[:, None], rng),
    "domain": lambda score, true, domains, rng: _drawn(
        (np.arange(score.shape[1]) != true[:, None]) & (domains == domains[true][:, None]), rng
    ),
    "rival": lambda score, true, domains, rng: _rival(score, true),
}

#: Columns of the second table; `shuffled` controls stand beside what they control.
_COLUMNS: Mapping[str, Callable[..., float]] = {
    "I(L;C)": lambda L, C, M, s, rng: with_label(L, C),
    "I(L;M)": lambda L, C, M, s, rng: with_label(L, M),
    "I(L;C,M)": lambda L, C, M, s, rng: with_label(L, C, M),
    "I(L;HyCal)": lambda L, C, M, s, rng: with_label(L, s),
    "L shuffled": lambda L, C, M, s, rng: with_label(rng.permutation(L), C, M),
    "M shuffled": lambda L, C, M, s, rng: with_label(L, C, rng.permutation(M)) - with_label(L, C),
    "C shuffled": lambda L, C, M, s, rng: with_label(L, rng.permutation(C), M) - with_label(L, M),
    "I(C;M given L)": lambda L, C, M, s, rng: between_given(C, M, L),
    "ρ(C,M given L)": lambda L, C, M, s, rng: float(
        np.mean([spearmanr(C[v == L], M[v == L]).statistic for v in (0, 1)])
    ),
}


def informed(found: Sequence[Evidence], seed: int = 0) -> dict[str, float]:
    """Return every column, mean over the given draws."""
    rng = np.random.default_rng(seed)
    return {name: float(np.mean([of(*one, rng) for one in found])) for name, of in _COLUMNS.items()}


def isotropic_table() -> None:
    """Print what holds, and what does not, under the paper's isotropic model."""
    table = PrintedTable("Isotropic model, 8,000 draws in 512 dimensions", "", "rank correlation", "information (nats)")
    R, U = directions_and_norms(8000, 512, seed=0)
    lines = {"R and a coordinate of U": (R, U)}
    for noise, length in {
        0.25: "a quarter as long as Y",
        0.5: "half as long",
        1.0: "as long",
        2.0: "twice as long",
    }.items():
        lines[f"C and M, noise {length}"] = noisy_pairs(8000, 512, noise=noise, seed=0)
    lines["C and M, noise half as long, X of unit length"] = noisy_pairs(8000, 512, noise=0.5, seed=0, unit=True)
    for name, (one, other) in lines.items():
        table.row(name, f"{spearmanr(one, other).statistic:+.2f}", f"{between(one, other):.2f}")


def information_table(
    title: str, domains: Sequence[Domain], shots: Sequence[int], seeds: int
) -> dict[int, dict[str, float]]:
    """Print the information of C, M and both; return that inside domains, normalised, by shots."""
    table = PrintedTable(f"{title}, {seeds} seeds; nats of ln 2 = 0.69", "shots / wrong class / evidence", *_COLUMNS)
    kept = {}
    for count in shots:
        for against in _WRONG:
            for normalised in (False, True):
                found = [evidence(domains, count, seed, against, normalised=normalised) for seed in range(seeds)]
                row = informed(found)
                name = f"{count} / {against} / {'z-scored' if normalised else 'raw'}"
                table.row(name, *(f"{value:.3f}" for value in row.values()))
                if normalised and against == "domain":
                    kept[count] = row
    return kept


def draw_isotropic() -> str:
    """Draw the three pairs of the isotropic model."""
    pairs = {
        "R and U of an isotropic Gaussian": (directions_and_norms(150, 512, seed=0), "R", "first coordinate of U"),
        "M and C of X = Y + noise": (noisy_pairs(150, 512, noise=0.5, seed=0)[::-1], "M", "C"),
        "M and C, X of unit length": (noisy_pairs(150, 512, noise=0.5, seed=0, unit=True)[::-1], "M", "C"),
    }
    out: list[str] = []
    with drawing("theory-isotropic", out, columns=3, size=(9.5, 3.0)) as axes:
        for place, (ax, (title, ((x, y), across, up))) in enumerate(zip(axes, pairs.items(), strict=True)):
            ax.plot(x, y, ".", markersize=3, color=COLOURS[place])
            ax.set_title(title, fontsize=9)
            ax.set_xlabel(across)
            ax.set_ylabel(up)
    return out[0]


def draw_information(found: Mapping[str, Mapping[int, Mapping[str, float]]]) -> str:
    """Draw the information about the label against shots, one panel for each data set."""
    out: list[str] = []
    with drawing("theory-information", out, columns=len(found), size=(1.0 + 4.4 * len(found), 3.2)) as axes:
        for ax, (title, by_shots) in zip(axes, found.items(), strict=True):
            for place, name in enumerate(("I(L;C)", "I(L;M)", "I(L;C,M)", "I(L;HyCal)")):
                values = [row[name] for row in by_shots.values()]
                ax.plot(list(by_shots), values, marker="osD^"[place], markersize=4, color=COLOURS[place], label=name)
            ax.set_xscale("log", base=2)
            ax.set_xticks(list(by_shots), [str(count) for count in by_shots])
            ax.set_xlabel("shots of each class")
            ax.set_ylabel("nats about the label")
            ax.set_title(title, fontsize=9)
        axes[0].legend(fontsize=7, framealpha=0.0)
    return out[0]


def main() -> None:
    """Print the tables, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="folder of the figures")
    options = parser.parse_args()
    isotropic_table()
    data: dict[str, tuple[list[Domain], Sequence[int]]] = {"xd8, CLIP ViT-B/16": (disciplines(), SHOTS)}
    if missing():
        print(missing())
    else:
        data["stream of five, CLIP ViT-B/32"] = (stream(queries=800), SHOTS[:3])
    found = {title: information_table(title, *of, options.seeds) for title, of in data.items()}
    for name, svg in {"isotropic": draw_isotropic(), "information": draw_information(found)}.items():
        path = options.out / f"theory-{name}.svg"
        path.write_text(svg.replace("currentColor", _GREY), encoding="utf-8")
        print(path.name)


if __name__ == "__main__":
    main()
