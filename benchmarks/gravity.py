"""Domain Gravity on real embeddings: python -m benchmarks.gravity.

For the bundled disciplines and, where they are, the CLIP ViT-B/32 stream: how much crosses between domains before
(nearest mean) and after calibration, what company does to a domain, and how taking and losing go with sample share and
visual entropy. Then an experiment: one domain after another gets four times the images while the others stay as they
are. If samples have gravity, it takes more of the others' images.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.domains import Domain, all_queries, disciplines, missing, stream
from benchmarks.printed import PrintedTable
from hycal import KLDA, NCM, SLDA, FeCAM, HyCal, RanPAC
from hycal.base import IncrementalClassifier
from hycal.bench.metrics import interval
from hycal.gravity import CLAIMS, DomainFlow, Gravity, domain_flow, measure, pooled
from hycal.gravity.tables import Sheet, sheets, summary

RICH, POOR = 8, 2
#: By the name in the tables; the first is the state before calibration.
METHODS: Mapping[str, Callable[[], IncrementalClassifier]] = {
    "NCM": NCM,
    "HyCal": lambda: HyCal(fusion="image"),
    "HyCal, Mahalanobis alone": lambda: HyCal(fusion="image", metric="mahalanobis"),
    "FeCAM": FeCAM,
    "SLDA": SLDA,
    "RanPAC, 1024 features": lambda: RanPAC(n_components=1024),
    "KLDA, 1024 features": lambda: KLDA(n_components=1024),
}


def print_sheets(tables: Sequence[Sheet]) -> None:
    """Print tables, each with its note."""
    for sheet in tables:
        table = PrintedTable(sheet.title, *sheet.head)
        for row in sheet.rows:
            table.row(*row)
        print(f"\n{sheet.note}")


def learned(
    method: Callable[[], IncrementalClassifier], domains: Sequence[Domain], shots: Mapping[str, int], seed: int
) -> IncrementalClassifier:
    """Learn so many images of each class of each domain; with fewer shots, some of the same images."""
    classifier = method()
    for domain in domains:
        order = np.random.default_rng(seed).permutation(len(domain.y))
        rows = [row for label in np.unique(domain.y) for row in order[domain.y[order] == label][: shots[domain.name]]]
        classifier.partial_fit(domain.X[rows], domain.y[rows], domain=domain.name)
    return classifier


def observe(title: str, domains: Sequence[Domain], seeds: Sequence[int], methods: Sequence[str]) -> dict[str, Gravity]:
    """Print and return the gravity of every method, all classes having as many shots."""
    shots = dict.fromkeys((domain.name for domain in domains), RICH)
    found = {
        name: pooled([measure(learned(METHODS[name], domains, shots, seed), *all_queries(domains)) for seed in seeds])
        for name in methods
    }
    pairs = [pair for pair in CLAIMS if pair[1] != "samples per class"]  # which is the same for all
    heads = ["crossing", "captured", "drifted", "gained", "shift"]
    claims = [f"ρ {of}, {against.split()[-1]} ({'+' if CLAIMS[of, against] > 0 else '-'})" for of, against in pairs]
    table = PrintedTable(f"{title}: {RICH} shots, {len(seeds)} seeds together, percent", "method", *heads, *claims)
    for name, one in found.items():
        means = [100 * float(np.mean([getattr(drift, key) for drift in one.drifts])) for key in heads[1:4]]
        shift = float(np.nanmean([drift.shift for drift in one.drifts]))
        cells = [f"{value:.2f}" for value in (100 * one.flow.crossing, *means)] + [f"{shift:.3f}"]
        for pair in pairs:
            relation = one.relations[pair]
            cells.append(f"{relation.correlation:+.2f}{'*' if relation.p < 0.05 else ''}")
        table.row(name, *cells)
    return found


def intervene(title: str, domains: Sequence[Domain], seeds: Sequence[int], methods: Sequence[str]) -> None:
    """Print what changes when one domain gets more images and no other does, mean over the domains so treated."""
    told = f"{title}: one domain from {POOR} to {RICH} shots, change in points, ± 95% over domains"
    table = PrintedTable(told, "method", "it takes of others (+)", "it loses (-)", "others lose (+)")
    for name in methods:
        changes = np.mean([_changes(METHODS[name], domains, seed) for seed in seeds], axis=0)
        table.row(name, *(f"{column.mean():+.2f} ± {interval(column):.2f}" for column in 100 * changes.T))


def _changes(method: Callable[[], IncrementalClassifier], domains: Sequence[Domain], seed: int) -> list[list[float]]:
    queries = all_queries(domains)
    poor = dict.fromkeys((domain.name for domain in domains), POOR)
    before = domain_flow(learned(method, domains, poor, seed), *queries)
    changes = []
    for treated in poor:
        after = domain_flow(learned(method, domains, {**poor, treated: RICH}, seed), *queries)
        at = after.domains.index(treated)
        changes.append([new - old for new, old in zip(_of(after, at), _of(before, at), strict=True)])
    return changes


def _of(flow: DomainFlow, at: int) -> tuple[float, float, float]:
    others = np.arange(len(flow.domains)) != at
    return float(flow.taken[at]), float(flow.loss[at]), float(flow.outflow[others].sum() / flow.asked[others].sum())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--queries", type=int, default=500, help="of each domain of the ViT-B/32 stream")
    options = parser.parse_args()
    data = {"xd8": disciplines()}
    if missing():
        print(missing())
    else:
        data["Five sets"] = stream(queries=options.queries)
    seeds = range(options.seeds)
    for title, domains in data.items():
        print(f"\n# {title}: {len(domains)} domains, {len(all_queries(domains)[1]):,} queries")
        found = observe(title, domains, seeds, options.only)
        for name in options.only[:2]:
            print(f"\n{name}: {summary(found[name])}")
            print_sheets(sheets(found[name])[:2])
        intervene(title, domains, seeds, options.only)


if __name__ == "__main__":
    main()
