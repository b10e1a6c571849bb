"""Kill every operation that writes at a random moment, and check the files that it leaves.

    python -m benchmarks.faults [--kills 500] [--servers 50] [--sorts 500] [--seed 0] [--only NAME]

Half of the kills come at a random time of the operation, half before a random line of the modules that write. After a
kill the files must hold the complete old state or the complete new one; the new one if the operation had reported its
end. Repeating the operation must give the new state and leave no temporary files. After forgetting for good, no byte of
the embeddings and thumbnails may be left in any file. Then servers are killed while clients
change the model: every answered change must be in the files. Then sorting images into folders, and undoing it, are
killed: undoing restores the tree, and going on finishes it. Ends with code 1 if a state is torn or a change is lost.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.cases import CASES
from benchmarks.faults.kills import Case, Outcome, Prepared
from benchmarks.faults.server import kill_server
from benchmarks.faults.sorting import kill_sorts
from benchmarks.printed import PrintedTable


def kill_case(case: Case, kills: int, chance: random.Random) -> list[Outcome]:
    """Kill one operation many times."""
    with tempfile.TemporaryDirectory() as room:
        prepared = Prepared.of(case, Path(room))
        return [prepared.killed(prepared.moment(chance, in_time=kill % 2 == 0)) for kill in range(kills)]


def kill_servers(kills: int, chance: random.Random) -> list[Outcome]:
    """Kill servers under load."""
    outcomes = []
    for _ in range(kills):
        with tempfile.TemporaryDirectory() as room:
            outcomes.append(kill_server(Path(room), after=chance.uniform(0.0, 0.4)))
    return outcomes


def report(table: PrintedTable, name: str, outcomes: Sequence[Outcome]) -> bool:
    """Print one row; return whether nothing was torn or lost."""
    found = Counter(outcome.found for outcome in outcomes)
    wrong = Counter(outcome.wrong for outcome in outcomes if outcome.wrong)
    table.row(name, *(str(count) for count in (len(outcomes), found["old"], found["new"], wrong.total())))
    for what, times in wrong.items():
        print(f"{times} x {what}", file=sys.stderr, flush=True)
    return not wrong


def main() -> int:
    """Kill every operation, and print the table."""
    parser = argparse.ArgumentParser(description="Kill -9 in the middle of every operation that writes.")
    parser.add_argument("--kills", type=int, default=500, help="shared by the operations")
    parser.add_argument("--servers", type=int, default=50, help="servers to kill under load")
    parser.add_argument("--sorts", type=int, default=500, help="kills of sort and unsort")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="operations with this in their names")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    began = time.monotonic()
    table = PrintedTable("Killed while they write", "operation", "kills", "old", "new", "torn or lost")
    cases = [case for case in CASES if options.only in case.name and options.kills]
    shares = [options.kills // len(cases) + (at < options.kills % len(cases)) for at in range(len(cases))]
    sound = [report(table, one.name, kill_case(one, kills, chance)) for one, kills in zip(cases, shares, strict=True)]
    if options.servers:
        sound.append(report(table, "server under load", kill_servers(options.servers, chance)))
    if options.sorts:
        table = PrintedTable("Killed while they sort", "operation", "kills", "not finished", "finished", "wrong")
        with tempfile.TemporaryDirectory() as room:
            for name, outcomes in kill_sorts(options.sorts, chance, Path(room)).items():
                sound.append(report(table, name, outcomes))
    print(f"\n{options.kills + options.servers + options.sorts} kills in {time.monotonic() - began:.0f} s")
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
