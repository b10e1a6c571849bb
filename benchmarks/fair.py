"""Every method at its best beside HierarchicalHyCal, four seeds: python -m benchmarks.fair.

Four tables: the three settings of the bundled xd8 disciplines, the same of five real domains in CLIP ViT-B/32, cars
with text, and pixels of scikit-learn's digits. The methods are `study:fair` of `src/hycal/bench/studies.toml`: as
published at their official width, tuned on training embeddings, and 1,024 wide as in the paper. Each row says whether
the method knows the domains, and how far HierarchicalHyCal leads it, with an interval (`hycal.bench.leads`). All test
images are asked, after the last step. Runs are kept in --out as those of `hycal bench run`, so a run that was stopped
goes on. `python -m tools.tables --run fair` puts the tables into docs/explanation/fair.md.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.domains import Domain, stream
from benchmarks.hierarchical_streams import SEEDS, SHOTS, digits
from hycal.bench.cells import Cell
from hycal.bench.domains import BenchDomain, load_domains
from hycal.bench.leads import lead_of_runs
from hycal.bench.methods import Variant, parse_methods, parse_variant
from hycal.bench.report.blocks import Column, ResultTable, Section
from hycal.bench.report.results import Group, Value, collect
from hycal.bench.report.sections.findings import lead_table, lead_value
from hycal.bench.report.writers import render
from hycal.bench.runner import grid, run_grid
from hycal.bench.settings import DomainShots, Setting, load_setting
from hycal.validation import unit_rows

CARS = (1, 2, 4, 8, 16)
PIXELS = (5, 10, 30)
OURS = "HierarchicalHyCal"
WITHOUT_DOMAINS = f"{OURS}+one-domain"
Embedded = dict[str, BenchDomain]
_INTRODUCTION = (
    "Last accuracy in percent, mean over seeds with its 95% interval, best in bold, second underlined. Printed by "
    "`python -m benchmarks.fair`."
)
_IN_SHORT = (
    "The best of the others is chosen by its test accuracy, tuned or not and at any width, in each column by itself, "
    "so this row is rather too good."
)


def embedded(domain: Domain) -> BenchDomain:
    """Return a domain of the development data as one of the benchmark."""
    names, train = np.unique(domain.y, return_inverse=True)
    return BenchDomain(
        name=domain.name,
        train_x=unit_rows(domain.X),
        train_y=train,
        test_x=unit_rows(domain.queries),
        test_y=np.searchsorted(names, domain.answers),
        class_names=tuple(names.tolist()),
        text=None if domain.text is None else unit_rows(np.stack([domain.text[name] for name in names])),
    )


def _setting(name: str, title: str, domains: Sequence[DomainShots]) -> Setting:
    return Setting(
        name=name,
        title=title,
        protocol="CIL",
        source="embeddings",
        seeds=SEEDS,
        short="all-available",
        sampling="own",
        domains=tuple(domains),
        tests="last-step",
    )


def xd8() -> dict[str, tuple[Setting, Embedded]]:
    """Return the three settings of the bundled disciplines: the images of `make demo`, tested in the end alone."""
    found = {}
    for head in SHOTS:
        setting = load_setting(f"xd8-{head}")
        last = replace(setting, name=f"fair-{setting.name}", like=setting.name, tests="last-step")
        found[head] = last, load_domains(setting)
    return found


def five() -> dict[str, tuple[Setting, Embedded]]:
    """Return three settings of the five domains, with the shots of `benchmarks.hierarchical`."""
    domains = {domain.name: replace(embedded(domain), text=None) for domain in stream(shots=None)}
    return {
        head: (_setting(f"fair-five-{head}", f"five domains, {head}", _shots(head, domains)), domains) for head in SHOTS
    }


def _shots(head: str, domains: Embedded) -> list[DomainShots]:
    """Return the shots of each domain: the same for all its classes, or 5 to all there are, by seed and class."""
    listed = []
    for name, domain in domains.items():
        most, classes = SHOTS[head][name], len(domain.class_names)
        shots: int | dict[int, tuple[int, ...]] = most
        if head == "cross-scale":
            draws = {seed: random.Random(f"{seed}/{name}") for seed in SEEDS}
            shots = {seed: tuple(draw.randint(5, most) for _ in range(classes)) for seed, draw in draws.items()}
        listed.append(DomainShots(name, classes, shots))
    return listed


def _by_shots(domain: BenchDomain, numbers: Sequence[int]) -> dict[str, tuple[Setting, Embedded]]:
    """Return one setting of one domain for each number of shots."""
    name, classes = domain.name, len(domain.class_names)
    return {
        f"{shots} shot{'s' if shots > 1 else ''}": (
            _setting(f"fair-{name}-{shots}", f"{name}, {shots} shots", [DomainShots(name, classes, shots)]),
            {name: domain},
        )
        for shots in numbers
    }


TABLES: Mapping[str, tuple[str, Callable[[], dict[str, tuple[Setting, Embedded]]]]] = {
    "xd8": ("Eight bundled disciplines, images alone", xd8),
    "five": ("Five domains in CLIP ViT-B/32, images alone", five),
    "cars": ("Cars with text", lambda: _by_shots(embedded(stream(["cars"], shots=None)[0]), CARS)),
    "pixels": ("Pixels of scikit-learn's digits", lambda: _by_shots(embedded(digits(10**6)), PIXELS)),
}


def cells(setting: Setting, variants: Sequence[Variant], seeds: Sequence[int]) -> list[Cell]:
    """Return the runs of a setting; nothing can be tuned on one shot, and one domain is no other for a single one."""
    single = all(domain.shots == 1 for domain in setting.domains)
    alone = len(setting.domains) == 1
    kept = [one for one in variants if not (one.tuned and single) and not (one.one_domain and alone)]
    return grid([setting], kept, seeds=seeds)


def summary(title: str, groups: Mapping[str, Group]) -> ResultTable:
    """Return HierarchicalHyCal, HyCal at its best, and in each column the best of all other methods."""

    def best(group: Group, wanted: Callable[[str], bool]) -> str:
        labels = [label for label in group.runs if wanted(parse_variant(label).method)]
        return max(labels, key=lambda label: group.value(label, "last").mean, default="")

    def named(group: Group, wanted: Callable[[str], bool]) -> Value:
        label = best(group, wanted)
        return Value(np.nan, np.nan, 0, text=f"{group.value(label, 'last').mean:.2f} {label}" if label else "")

    def lead(group: Group, label: str) -> Value:
        other = best(group, lambda method: method not in (OURS, "HyCal"))
        return lead_value(lead_of_runs(group.runs.get(label, ()), group.runs.get(other, ())))

    rows: Mapping[str, Callable[[Group], Value]] = {
        OURS: lambda group: group.value(OURS, "last"),
        WITHOUT_DOMAINS: lambda group: group.value(WITHOUT_DOMAINS, "last"),
        "HyCal at its best": lambda group: named(group, lambda method: method == "HyCal"),
        "best of the others": lambda group: named(group, lambda method: method not in (OURS, "HyCal")),
        f"lead of {OURS} over it": lambda group: lead(group, OURS),
        f"lead of {WITHOUT_DOMAINS} over it": lambda group: lead(group, WITHOUT_DOMAINS),
    }
    columns = tuple(Column("last", head, group) for head, group in groups.items())
    listed = tuple((name, tuple(value(group) for group in groups.values())) for name, value in rows.items())
    return ResultTable(f"{title}: in short", _IN_SHORT, columns, listed)


def make_section(name: str, variants: Sequence[Variant], options: argparse.Namespace) -> Section:
    """Run what is missing of a table, unless only kept runs are wanted; return the table, and in short what it says."""
    title, load = TABLES[name]
    parts = load()
    wanted = [cell for setting, _ in parts.values() for cell in cells(setting, variants, options.seeds)]
    if not options.kept:
        run_grid(
            wanted,
            {setting.name: domains for setting, domains in parts.values()},
            options.out,
            cluster=f"local:{options.jobs}",
            watch=lambda done, total: print(f"{name}: {done} of {total} runs", file=sys.stderr, flush=True),
        )
    results, labels = collect(options.out), {variant.label for variant in variants}
    groups = {head: results.find(setting.name) for head, (setting, _) in parts.items()}
    shown = {
        head: replace(
            group,
            runs={
                label: runs for label, runs in group.runs.items() if label in labels and len(runs) >= len(options.seeds)
            },
        )
        for head, group in groups.items()
        if group is not None
    }
    return Section(name, title, (summary(title, shown), lead_table(f"{title}: every method", shown)))


def main() -> None:
    """Run what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/fair"))
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--methods", default="study:fair", help="as for `hycal bench run`; with HierarchicalHyCal")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS), choices=SEEDS)
    parser.add_argument("--jobs", type=int, default=-1, help="processes side by side; -1 for one on each core")
    parser.add_argument("--kept", action="store_true", help="run nothing: print the runs that --out has")
    options = parser.parse_args()
    variants = parse_methods(options.methods)
    if OURS not in [variant.label for variant in variants]:
        parser.error(f"--methods is {options.methods!r}; expected {OURS} among them, as all leads are its leads")
    sections = [make_section(name, variants, options) for name in options.only]
    print(render("markdown", sections, introduction=_INTRODUCTION))


if __name__ == "__main__":
    main()
