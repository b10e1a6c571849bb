"""How long `hycal predict` takes to start, in processor time beside that of importing NumPy and ONNX Runtime.

    python -m benchmarks.start [--runs 5]

Every command runs in a process of its own. The least of several runs counts: user and system time of the process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PHOTOS = Path(__file__).parents[1] / "examples" / "photos.py"
BASE = ("-c", "import numpy, onnxruntime")
HYCAL = ("-c", "from hycal.cli import app; app()")


def processor_seconds(arguments: Sequence[str], *, runs: int) -> float:
    """Return the least processor time of `python ARGUMENTS`."""
    spent = []
    for _ in range(runs):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(spent)


def main() -> None:
    """Print the seconds of each command, and the ratio to the imports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        model, photos = Path(folder, "digits.hycal"), Path(folder, "photos")
        learn = (*HYCAL, "learn", str(model), str(photos / "low"), "--cache", str(Path(folder, "cache")))
        for before in ((str(PHOTOS), str(photos)), learn):
            subprocess.run([sys.executable, *before], check=True, capture_output=True)
        image = min((photos / "new" / "3").iterdir())
        base = processor_seconds(BASE, runs=runs)
        print(f"import numpy, onnxruntime: {base:.2f} s")
        for name, arguments in {"--help": ("--help",), "one image": (str(model), str(image))}.items():
            seconds = processor_seconds((*HYCAL, "predict", *arguments), runs=runs)
            print(f"hycal predict, {name}: {seconds:.2f} s, {seconds / base:.1f}x")


if __name__ == "__main__":
    main()
