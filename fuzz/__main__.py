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

from fuzz.targets import TARGETS, Target

MOST_MEGABYTES = 1024  # of resident memory, the interpreter and its libraries (about 150 MB) included
MOST_SECONDS = 10  # for one input
LONGEST = 64 * 1024


def fuzz(target: Target, seconds: int, keep: Path) -> bool:
    """Fuzz one target; print one line; return whether it held."""
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
    figures = [_last(log, pattern) for pattern in (r"number_of_executed_units: (\d+)", r"cov: (\d+)", r"corp: (\d+)")]
    memory = _last(log, r"peak_rss_mb: *(\d+)")
    print(f"{target.name:10}{figures[0]:>10}{figures[1]:>10}{figures[2]:>8}{memory:>8}  {_verdict(done.returncode)}")
    if done.returncode:
        print("\n".join(log.splitlines()[-25:]))
    sys.stdout.flush()
    return not done.returncode


def _last(log: str, pattern: str) -> str:
    found = re.findall(pattern, log)
    return found[-1] if found else "-"


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
    print(f"{'target':10}{'inputs':>10}{'coverage':>10}{'corpus':>8}{'MB':>8}", flush=True)
    sound = [fuzz(TARGETS[name], options.seconds, options.keep) for name in options.targets or TARGETS]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
