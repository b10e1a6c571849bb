"""The sections of the report, one file each: a function from results to sections. A new one is a file and one line."""

from __future__ import annotations

from collections.abc import Callable

from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.sections.ablation import ablation
from hycal.bench.report.sections.backbone import backbone
from hycal.bench.report.sections.complementarity import complementarity
from hycal.bench.report.sections.efficiency import efficiency
from hycal.bench.report.sections.fscil import fscil
from hycal.bench.report.sections.fusion import fusion
from hycal.bench.report.sections.gravity import gravity
from hycal.bench.report.sections.prototypes import prototypes
from hycal.bench.report.sections.random_orders import random_orders
from hycal.bench.report.sections.s_cde import scarcity
from hycal.bench.report.sections.sensitivity import sensitivity
from hycal.bench.report.sections.setting import settings
from hycal.bench.report.sections.tuned import tuned
from hycal.bench.report.sections.two_domain import two_domain

#: In the order of the page.
SECTIONS: tuple[Callable[[Results], list[Section]], ...] = (
    settings,
    scarcity,
    ablation,
    tuned,
    fusion,
    random_orders,
    two_domain,
    fscil,
    backbone,
    efficiency,
    sensitivity,
    complementarity,
    prototypes,
    gravity,
)


def all_sections(results: Results) -> list[Section]:
    """Return every section of a report."""
    return [section for make in SECTIONS for section in make(results)]
