"""Kill -9 in the middle of everything that writes; `python -m benchmarks.faults` does it 500 times."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands import run_python
from tools.tables import printed_tables

# What the harness must catch: a writer that replaces nothing in one step.
CARELESS = """
import time
from pathlib import Path
from benchmarks.faults.kills import AtTime, Case, Prepared
import sys

def act(folder):
    with (folder / "file").open("wb", buffering=0) as file:
        for _ in range(20):
            file.write(b"new ")
            time.sleep(0.01)

def prepare(folder):
    (folder / "file").write_bytes(b"old")

careless = Case("careless", prepare, act, lambda folder: (folder / "file").read_text())
print(Prepared.of(careless, Path(sys.argv[1])).killed(AtTime(0.05)))
"""


def test_old_or_new_and_whole_at_any_moment() -> None:
    done = run_python("-m", "benchmarks.faults", "--kills", 16, "--servers", 2, "--sorts", 12)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row[1:] for _, table in printed_tables(done.stdout) for row in table.rows]
    kills, old, new, wrong = (sum(int(row[column]) for row in rows) for column in range(4))
    assert kills == 30 == old + new and wrong == 0
    assert old and new, "the kills fall before and after the moment that counts"


def test_the_harness_sees_a_torn_file(tmp_path: Path) -> None:
    done = run_python("-c", CARELESS, tmp_path)
    assert "another state than the old one and the new one" in done.stdout, done.stdout + done.stderr
