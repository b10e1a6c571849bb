"""Fuzz every target for some seconds, guided by coverage, and print what was found.

    python -m fuzz [TARGET ...] [--seconds 60] [--keep fuzz-found]

Needs the extra `fuzz` (`make fuzz` installs it in an environment of its own). An input that breaks a target is kept in
the folder that --keep names, and the end is code 1.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.printed import PrintedTable
from fuzz.targets import TARGETS, Target

MOST_MEGABYTES = 1024  # of resident memory, the interpreter and its libraries (about 150 MB) included
MOST_SECONDS = 10  # for one input
LONGEST = 64 * 1024


def fuzz(target: Target, seconds: int, keep: Path, table: PrintedTable) -> bool:
    """Fuzz one target; print one row; return whether it held."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, content in enumerate(target.seeds()):
            Path(corpus, f"seed-{number}").write_bytes(content)
        options = {
            "max_total_time": seconds,
            "rss_limit_mb": MOST_MEGABYTES,
            "timeout": MOST_SECONDS,
            "max_len": LONGEST,
            "artifact_prefix": f"{keep}/{target.name}-",
            "print_final_stats": 1,
            "seed": 1,
        }
        command = [
            sys.executable,
            "-m",
            "fuzz.worker",
            target.name,
            *(f"-{name}={value}" for name, value in options.items()),
        ]
        done = subprocess.run([*command, corpus], capture_output=True, text=True, errors="replace")
    log = done.stdout + done.stderr
    patterns = (r"number_of_executed_units: (\d+)", r"cov: (\d+)", r"corp: (\d+)", r"peak_rss_mb: *(\d+)")
    table.row(target.name, *(_last(log, pattern) for pattern in patterns), _verdict(done.returncode))
    if done.returncode:
        print("\n".join(log.splitlines()[-25:]), file=sys.stderr)
    return not done.returncode


def _last(log: str, pattern: str) -> str:
    found = re.findall(pattern, log)
    return f"{int(found[-1]):,}" if found else "-"


def _verdict(code: int) -> str:
    return "held" if code == 0 else f"BROKE (code {code})"


def main() -> int:
    """Fuzz what was asked for, or everything."""
    parser = argparse.ArgumentParser(description="Coverage-guided fuzzing of everything that reads untrusted input.")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    options = parser.parse_args()
    options.keep.mkdir(exist_ok=True)
    title = f"Fuzzing, {options.seconds} seconds for each target"
    table = PrintedTable(title, "target", "inputs", "coverage", "corpus", "peak MB", "result")
    sound = [fuzz(TARGETS[name], options.seconds, options.keep, table) for name in options.targets or TARGETS]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
