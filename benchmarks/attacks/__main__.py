"""Run every attack in a folder of its own, and print whether its promise held.

    python -m benchmarks.attacks [NUMBER...]

Ends with 1 if a promise was broken, or if a number has no attack.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import benchmarks.attacks
from benchmarks.attacks.case import Case
from benchmarks.printed import PrintedTable

NUMBERS = range(1, 22)


def all_cases() -> list[Case]:
    """Return the cases of every module of this package, by number."""
    modules = [module.name for module in pkgutil.iter_modules(benchmarks.attacks.__path__) if module.name != "__main__"]
    found = (getattr(importlib.import_module(f"benchmarks.attacks.{name}"), "CASES", ()) for name in modules)
    return sorted((case for cases in found for case in cases), key=lambda case: case.number)


def run(cases: Sequence[Case], numbers: Iterable[int]) -> bool:
    """Run the cases with these numbers, print a row for each, and return whether every promise held."""
    table, good = PrintedTable("Attacks", "promise", "case", "result", "figures"), True
    for number in numbers:
        chosen = [case for case in cases if case.number == number]
        if not chosen:
            table.row("", str(number), "NOT TRIED", "")
        for case in chosen:
            held, figure = _attacked(case)
            good &= held
            table.row(case.promise, str(number), "held" if held else "BROKEN", figure)
        good &= bool(chosen)
    return good


def _attacked(case: Case) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory(prefix="hycal-attack-") as folder:
        try:
            held, figure = case.attack(Path(folder))
        except Exception as error:  # an attack that cannot be carried out shows nothing
            held, figure = False, f"the attack ended in {error!r}"
    return held, figure.replace(folder, "FOLDER")


def main() -> int:
    """Run the attacks that the command line asks for."""
    parser = argparse.ArgumentParser(description="Try to break what docs/explanation/reliability.md promises.")
    parser.add_argument("numbers", nargs="*", type=int, help="all of them by default")
    return 0 if run(all_cases(), parser.parse_args().numbers or NUMBERS) else 1


if __name__ == "__main__":
    sys.exit(main())
