"""The three settings in other orders of domains: a summary, and accuracy by domain."""

from __future__ import annotations

from hycal.bench.report.blocks import Block, Section
from hycal.bench.report.results import Results
from hycal.bench.report.sections.setting import domain_tables
from hycal.bench.report.tables import FAMILIES, IMBALANCES, PAPER_METHODS, Part, combined
from hycal.bench.settings import DEFAULT_ORDER

_ORDERS = ("I", "II", "III", "IV")
_CAPTION = "What is learned in the end does not depend on the order, but for methods that choose a ridge on the way."


def random_orders(results: Results) -> list[Section]:
    """Return the section."""
    blocks: list[Block] = []
    for family, prefix in FAMILIES.items():
        for head, name in IMBALANCES.items():
            parts = [
                Part(f"Order {order}", f"{prefix}{name}@{order}", ("last", "average", "s_cde", "ece"))
                for order in _ORDERS
            ]
            title = f"Random orders: {head}, {family}"
            blocks += combined(results, title, _CAPTION, parts, run="all" if prefix else PAPER_METHODS)
    for group in results.groups:
        if group.order != DEFAULT_ORDER and group.methods:
            blocks += domain_tables(group)
    return [Section("random-orders", "Random orders of domains", tuple(blocks))]
