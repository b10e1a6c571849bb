"""Flip random bits of a model, its undo data, its journal and the embedding cache: none may be silent.

    python -m benchmarks.flips [FLIPS] [SEED]

Each flip is one bit of one file; then the file is read, compared with what was written, and put back. "Refused" is a
HyCalError. "Without effect" is the content that was written: of the cache also if some rows are missing, which are
embedded again. "Silent" is any other content, "uncaught" any other error. Ends with code 1 if there is one of these.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.faults.cases import SPACE, arrivals, image, look_at_model, model
from benchmarks.printed import PrintedTable
from hycal import load
from hycal.embedding import EmbeddingCache
from hycal.errors import HyCalError
from hycal.project.journal import journal_of

CLASSES, CACHED = 6, 40


@dataclass(frozen=True)
class Target:
    """A file to damage, the folder of all that belongs to it, and `read`: whether what is read is what was written."""

    name: str
    path: Path
    folder: Path
    read: Callable[[], bool]

    def flip(self, chance: random.Random) -> str:
        """Flip one bit, say what came of it, and put the folder back."""
        content = bytearray(self.path.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        aside = self.folder.with_name("aside")
        shutil.copytree(self.folder, aside)
        self.path.write_bytes(content)
        try:
            return "without effect" if self.read() else "silent"
        except HyCalError:
            return "refused"
        except Exception as error:  # any other error is a finding
            return f"uncaught {error!r}"
        finally:
            shutil.rmtree(self.folder)
            aside.rename(self.folder)


def targets(room: Path) -> dict[str, Target]:
    """Write a project with undo data and a journal, and a cache; return the files to damage."""
    home, cached = room / "home", room / "cached"
    home.mkdir()
    model(home).learn(arrivals(range(CLASSES)))
    model(home).forget("things/3")  # into the undo data
    journaled = model(home, journal=True)
    for number in range(3):
        journaled.correct(image(1000 + number), f"things/{number}")
    journaled.undo()
    path, seen = home / "model.hycal", look_at_model(home)
    classes = load(path).classes_.tolist()

    def sound_model() -> bool:
        return look_at_model(home) == seen and load(path).classes_.tolist() == classes

    examples = [image(number) for number in range(CACHED)]
    keys, rows = [example.key for example in examples], np.stack([example.row for example in examples])
    for start in range(0, CACHED, 10):
        with _cache(cached) as cache:
            cache.add(keys[start : start + 10], rows[start : start + 10])

    def sound_cache() -> bool:
        with _cache(cached) as cache:
            known = [number for number, key in enumerate(keys) if key in cache.known()]
            found = cache.get([keys[number] for number in known])
            return np.array_equal(found, rows[known]) and cache.known() <= set(keys)

    shard = min(cached.glob("shards/*/*.npy"))
    found = (
        Target("model and undo", path, home, sound_model),
        Target("journal", journal_of(path), home, sound_model),
        Target("index of the cache", cached / "index.sqlite", cached, sound_cache),
        Target("shard of the cache", shard, cached, sound_cache),
    )
    assert all(target.read() for target in found), "the files are sound before"
    return {target.name: target for target in found}


def _cache(folder: Path) -> EmbeddingCache:
    return EmbeddingCache(folder, fingerprint="synthetic", dimension=SPACE.dimension)


def flip(target: Target, times: int, chance: random.Random) -> Counter[str]:
    """Flip `times` random bits, one after the other, each in the sound file."""
    return Counter(target.flip(chance) for _ in range(times))


def is_silent(outcome: str) -> bool:
    """Whether an outcome breaks the promise."""
    return outcome == "silent" or outcome.startswith("uncaught")


def main() -> int:
    """Flip bits of each file, and print the table."""
    given = [int(text) for text in sys.argv[1:]]
    times, seed = [*given, *(10_000, 0)[len(given) :]]
    chance, wrong = random.Random(seed), 0
    table = PrintedTable(f"{times:,} flipped bits", "file", "flips", "refused", "without effect", "silent", "uncaught")
    with tempfile.TemporaryDirectory() as room:
        found = targets(Path(room))
        for name, target in found.items():
            share = times // len(found)
            told = flip(target, share, chance)
            uncaught = sum(number for outcome, number in told.items() if outcome.startswith("uncaught"))
            counts = (share, told["refused"], told["without effect"], told["silent"], uncaught)
            table.row(name, *(f"{count:,}" for count in counts))
            wrong += told["silent"] + uncaught
            for outcome in told:
                if outcome.startswith("uncaught"):
                    print(f"{told[outcome]} x {outcome}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
