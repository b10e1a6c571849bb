"""How long `hycal predict` takes to start, in processor time beside that of importing NumPy and ONNX Runtime.

    python -m benchmarks.start [--runs 5]

Every command runs in a process of its own, one after the other, several times. The least processor time of each counts,
user and system. The targets are a ratio of 3 for --help, and of 5 for one image.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PHOTOS = Path(__file__).parents[1] / "examples" / "photos.py"
BASE = ("-c", "import numpy, onnxruntime")
HYCAL = ("-c", "from hycal.cli import app; app()")


TARGETS = {"import numpy, onnxruntime": 1.0, "hycal predict, --help": 3.0, "hycal predict, one image": 5.0}


def processor_seconds(arguments: Sequence[str]) -> float:
    """Return the processor time of `python ARGUMENTS`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the seconds of each command, the ratio to the imports, and a star behind a ratio that misses its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        model, photos = Path(folder, "digits.hycal"), Path(folder, "photos")
        learn = (*HYCAL, "learn", str(model), str(photos / "low"), "--cache", str(Path(folder, "cache")))
        for before in ((str(PHOTOS), str(photos)), learn):
            subprocess.run([sys.executable, *before], check=True, capture_output=True)
        image = min((photos / "new" / "3").iterdir())
        predict = (*HYCAL, "predict")
        commands = (BASE, (*predict, "--help"), (*predict, str(model), str(image)))
        spent = [[processor_seconds(command) for command in commands] for _ in range(runs)]
    least = [min(times) for times in zip(*spent, strict=True)]
    for (name, target), seconds in zip(TARGETS.items(), least, strict=True):
        ratio = seconds / least[0]
        print(f"{name}: {seconds:.2f} s, {ratio:.1f}x{'*' if ratio > target else ''}")


if __name__ == "__main__":
    main()
