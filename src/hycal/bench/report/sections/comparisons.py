"""Sections that compare settings, as data: each has tables that put settings side by side.

A new section is an entry of `COMPARISONS`; the report shows them in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hycal.bench.methods import find_study, parse_variant
from hycal.bench.report.blocks import Block, Section
from hycal.bench.report.results import Group, Results
from hycal.bench.report.sections.setting import domain_tables
from hycal.bench.report.tables import FAMILIES, IMBALANCES, ExtraRow, Part, combine
from hycal.bench.settings import DEFAULT_ORDER

Belongs = Callable[[Group, str], bool]


@dataclass(frozen=True)
class Comparison:
    """A section of tables that put settings side by side."""

    anchor: str
    title: str
    caption: str  # of each table
    tables: Mapping[str, tuple[Part, ...]]  # the parts of each table, by its title
    # As for `combine`.
    run: str = ""
    belongs: Belongs = lambda group, method: method in group.methods
    extra: Mapping[str, ExtraRow] = field(default_factory=dict)
    other_orders: bool = False  # whether tables by domain follow, for every setting in another order

    def section(self, results: Results) -> Section:
        """Return the section for these results."""
        blocks: list[Block] = []
        for title, parts in self.tables.items():
            blocks += combine(results, title, self.caption, parts, run=self.run, belongs=self.belongs, extra=self.extra)
        for group in results.groups:
            if self.other_orders and group.order != DEFAULT_ORDER and group.methods:
                blocks += domain_tables(group)
        return Section(self.anchor, self.title, tuple(blocks))


def comparisons(results: Results) -> list[Section]:
    """Return the sections."""
    return [comparison.section(results) for comparison in COMPARISONS]


def _imbalances(prefix: str = "", *columns: str) -> tuple[Part, ...]:
    settings = {head: prefix + name for head, name in IMBALANCES.items()}
    return tuple(Part(head, name, columns) if columns else Part(head, name) for head, name in settings.items())


def _by_family(title: str, *columns: str) -> dict[str, tuple[Part, ...]]:
    return {f"{title}, {family}": _imbalances(prefix, *columns) for family, prefix in FAMILIES.items()}


def _of_study(name: str, *, text: bool = False) -> Belongs:
    """Accept HyCal and the methods of a study, in groups that ran the study and, with `text`, have text."""

    def belongs(group: Group, method: str) -> bool:
        labels = find_study(name).labels
        ran = any(label in group.runs for label in labels) and (group.has_text or not text)
        return ran and method in ("HyCal", *labels)

    return belongs


def _was_tuned(group: Group, method: str) -> bool:
    """Accept tuned methods, and the same methods untuned."""
    return replace(parse_variant(method), tuned=True).label in group.runs


_TWO_DOMAINS = ("last:organ", "last:dtd", "last", "gap", "ece")
COMPARISONS = (
    Comparison(
        "s-cde",
        "S_CDE over the three settings",
        "S_CDE is the harmonic mean of S_adapt and S_last.",
        _by_family("S_CDE", "s_adapt", "s_last", "s_cde", "ece"),
    ),
    Comparison(
        "metrics",
        "Metric ablation",
        "HyCal blends cosine and Mahalanobis by the shots of a class; the others use one of them, or their average.",
        _by_family("Metrics"),
        run="HyCal study:metrics",
        belongs=_of_study("metrics"),
    ),
    Comparison(
        "tuned",
        "Tuned by leave-one-out likelihood",
        "+tuned sets the parameters after each step, by training images alone; the row above is the method untuned.",
        _by_family("Tuned", "last", "average", "ece"),
        run="all study:tuned",
        belongs=_was_tuned,
    ),
    Comparison(
        "fusion",
        "Fusion of image and text",
        "Sum keeps the width of the embedding, concatenation doubles it. Needs text embeddings.",
        {"Fusion of image and text": _imbalances()},  # the bundled disciplines have no text
        run="HyCal study:fusion",
        belongs=_of_study("fusion", text=True),
    ),
    Comparison(
        "random-orders",
        "Random orders of domains",
        "What is learned in the end does not depend on the order, but for methods that choose a ridge on the way.",
        {
            f"Random orders: {head}, {family}": tuple(
                Part(f"Order {order}", f"{prefix}{name}@{order}") for order in ("I", "II", "III", "IV")
            )
            for family, prefix in FAMILIES.items()
            for head, name in IMBALANCES.items()
        },
        other_orders=True,
    ),
    Comparison(
        "two-domain",
        "Two domains (Table 1)",
        "Last accuracy in percent: organs (11 classes), textures (47 classes), their mean and gap (less is better); "
        "below, the training images of each.",
        {
            "Two domains (Table 1)": (
                Part("General (10 shots)", "two-domain-general", _TWO_DOMAINS),
                Part("Balanced (20 and 5 shots)", "two-domain-balanced", _TWO_DOMAINS),
                Part("Imbalanced (5 and 10 shots)", "two-domain-imbalanced", _TWO_DOMAINS),
            )
        },
        extra={"training images": Group.images, "zero-shot, all names": Group.zero_shot},
    ),
    Comparison(
        "fscil",
        "FSCIL: 5, 10, 15 and 20 shots",
        "",
        {"FSCIL: 5, 10, 15 and 20 shots": tuple(Part(f"{shots} shots", f"fscil-{shots}") for shots in (5, 10, 15, 20))},
    ),
    Comparison(
        "sessions",
        "Sessions inside one data set, base and novel classes, transfer",
        "Base: accuracy on the classes of the first step in the end; Novel: on those of all later steps; Backward "
        "transfer: what later steps did to a domain; Forward transfer: accuracy on a domain when it is learned, less "
        "that of the method that learned it alone. docs/reference/benchmark.md has the formulas.",
        {
            "Ten sessions of flowers": (Part("", "xd8-sessions", ("last", "average", "backward", "forward", "ece")),),
            "A base session of flowers, then eight of five classes": (
                Part("", "xd8-fscil-base", ("base", "novel", "harmonic", "average", "backward", "ece")),
            ),
            "The domain is known": (Part("", "xd8-mtil", ("last", "average", "backward", "forward", "ece")),),
        },
    ),
    Comparison(
        "backbone-and-x-tail",
        "DataComp and X-TAIL",
        "Average is over the domains learned so far, as the paper's; Transfer, before a domain is learned, and the "
        "average over all cells are X-TAIL's own. Methods that cannot tell a class by its name have no Transfer.",
        {
            "DataComp and X-TAIL": (
                Part("High-scale, DataComp", "high-scale-datacomp", embeddings="DATACOMP-EMBEDDINGS"),
                Part("X-TAIL", "x-tail", ("last", "average", "s_cde", "transfer", "average_x_tail", "ece")),
            )
        },
    ),
)
