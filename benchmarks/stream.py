"""Accuracy of every method on a stream of five real domains, after the last step: python -m benchmarks.stream.

Three tables: all methods on images alone (text exists for one domain only), the methods that use text on that domain,
and KLDA's published pseudo-inverse beside its regularised form, step by step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.domains import learn_in_order, stream
from hycal import (
    APE,
    GDA,
    KLDA,
    NCM,
    SLDA,
    TEEN,
    AnaCP,
    DualRAIL,
    FeCAM,
    HyCal,
    LoRanPAC,
    PrimalRAIL,
    ProKeR,
    RanPAC,
    TipAdapter,
    ZeroShot,
)
from hycal.base import IncrementalClassifier

#: What learns from images alone, by the name in the table.
IMAGES: Mapping[str, Callable[[], IncrementalClassifier]] = {
    "HyCal image": lambda: HyCal(fusion="image"),
    "NCM": NCM,
    "TEEN": TEEN,
    "TEEN others": lambda: TEEN(base="others"),
    "SLDA": SLDA,
    "SLDA by domain": lambda: SLDA(covariance="domain"),
    "GDA": lambda: GDA(zero_shot="none"),
    "GDA by domain": lambda: GDA(zero_shot="none", covariance="domain"),
    "FeCAM vit": FeCAM,
    "FeCAM few-shot": lambda: FeCAM(variant="few-shot"),
    "TipAdapter": lambda: TipAdapter(zero_shot="none"),
    "ProKeR": lambda: ProKeR(zero_shot="none"),
    "DualRAIL": lambda: DualRAIL(zero_shot="none"),
    "PrimalRAIL": lambda: PrimalRAIL(zero_shot="none"),
    "KLDA": KLDA,
    "AnaCP": AnaCP,
    "LoRanPAC": LoRanPAC,
    "RanPAC per-task": RanPAC,
    "RanPAC first-task": lambda: RanPAC(ridge="first-task"),
    "RanPAC joint": lambda: RanPAC(ridge="joint"),
}
#: What uses text.
TEXT: Mapping[str, Callable[[], IncrementalClassifier]] = {
    "ZeroShot": ZeroShot,
    "HyCal sum": HyCal,
    "GDA": GDA,
    "TipAdapter": TipAdapter,
    "APE": APE,
    "ProKeR": ProKeR,
    "DualRAIL": DualRAIL,
    "PrimalRAIL": PrimalRAIL,
}
COLLAPSE = 2048  # Fourier features of the last table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="rows of the first table, such as NCM SLDA; all by default")
    parser.add_argument("--queries", type=int, help="ask about this many of each domain; all by default")
    options = parser.parse_args()
    domains = stream(queries=options.queries)
    names = [domain.name for domain in domains]
    print(f"After the last step, images alone, {len({label for domain in domains for label in domain.y})} candidates")
    _head([*names, "mean", "seconds"])
    for name, method in IMAGES.items():
        if options.only and name.split()[0] not in options.only:
            continue
        start = time.perf_counter()
        classifier = learn_in_order(method(), domains)
        found = [domain.accuracy(classifier) for domain in domains]
        _row(name, [*found, float(np.mean(found)), time.perf_counter() - start])
    cars = [domain for domain in domains if domain.text is not None]
    print("\nWith text, each domain that has it alone")
    _head([domain.name for domain in cars])
    for name, method in TEXT.items():
        _row(name, [domain.accuracy(learn_in_order(method(), [domain])) for domain in cars])
    print(f"\nKLDA with D = {COLLAPSE}, mean over the domains so far after each step; N - C below D in brackets")
    scarce = [sum(len(d.y) - len(set(d.y)) for d in domains[: step + 1]) for step in range(len(domains))]
    _head([f"[{rank}]" if rank < COLLAPSE else str(rank) for rank in scarce])
    for mode in ("faithful", "regularised"):
        classifier, cells = KLDA(n_components=COLLAPSE, mode=mode), []
        for step in range(len(domains)):
            learn_in_order(classifier, domains[step : step + 1])
            cells.append(float(np.mean([domain.accuracy(classifier) for domain in domains[: step + 1]])))
        _row(mode, cells)


def _head(columns: Sequence[str]) -> None:
    print(f"{'':18}" + "".join(f"{column:>10}" for column in columns), flush=True)


def _row(name: str, cells: Sequence[float]) -> None:
    print(f"{name:18}" + "".join(f"{cell:10.1f}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
