"""Many files in one folder: how long `hycal` takes to list them, and how much memory.

    python -m benchmarks.folder_listing [--files 100000]

The files are empty; reading and encoding them costs the same wherever they lie.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from pathlib import Path

from hycal.data.readers import list_images


def main() -> None:
    """Make the files, list them twice: once for the time, once for the memory."""
    parser = argparse.ArgumentParser(description="List a folder of many files.")
    parser.add_argument("--files", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "class")
        target.mkdir()
        for number in range(options.files):
            (target / f"image-{number:08}.jpg").touch()
        began = time.process_time()
        found = len(list_images(folder))
        seconds = time.process_time() - began
        tracemalloc.start()
        listed = list_images(folder)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    each = f"{peak / len(listed):.0f} bytes a file"
    print(f"{found:,} files listed in {seconds:.2f} s of one core, {peak / 2**20:.0f} MB ({each})")


if __name__ == "__main__":
    main()
