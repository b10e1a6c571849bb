"""Kill `hycal sort` and `hycal unsort` at a random moment: undoing restores the tree, and going on finishes it.

Three operations on a folder with names that meet in one class folder: sorting by copies, sorting by moves, and undoing
moves. After a kill, undoing must restore every file of the folder, with its times, and leave nothing else; going on
instead must give the folder that an undisturbed run gives, and undoing that must restore the tree too.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.faults.kills import AtLine, AtTime, Moment, Outcome, run_killed
from hycal.pile.manifest import NAME, Way
from hycal.pile.moves import undo_sort
from hycal.pile.sorting import Decision, ImageToSort, new_manifest, sort_images

IMAGES = 24
_LINES = 40  # executed lines of the writing modules for each image, about
Tree = dict[str, tuple[bytes, int]]


def write_pile(room: Path, images: int = IMAGES) -> None:
    """Write the folder to sort: two folders with files of the same names."""
    for number in range(images):
        path = room / "pile" / "ab"[number % 2] / f"{number // 2}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.sha256(str(number).encode()).digest() * 300)
        os.utime(path, ns=(10**18 + number, 10**18 + number))


def tree(room: Path) -> Tree:
    """Return the content and the time of every file; a folder has no content."""
    found = {}
    for path in sorted(room.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        found[path.relative_to(room).as_posix()] = content, path.stat().st_mtime_ns if path.is_file() else 0
    return found


def sort_pile(room: Path, way: Way) -> None:
    """Sort the folder: a third of the images is unsure, the others are of two classes."""
    images = []
    for path in sorted((room / "pile").rglob("*.jpg")):
        content = path.read_bytes()
        place, label = ("unsure", "x/a") if content[0] % 3 == 0 else ("sorted", f"x/{'ab'[content[1] % 2]}")
        source = path.relative_to(room / "pile").as_posix()
        images.append(ImageToSort(source, hashlib.sha256(content).digest(), Decision(place, label, 0.9)))
    fresh = new_manifest(room / "pile", room / "out", way=way, layout="folders", csv=True)
    sort_images(room / "out", fresh, images, sidecars=True)


def undo_pile(room: Path) -> None:
    """Undo the sorting, if there is any."""
    if (room / "out" / NAME).is_file():
        undo_sort(room / "out")


def _restore(room: Path, kept: Path) -> None:
    shutil.rmtree(room)
    shutil.copytree(kept, room, symlinks=True)


def _without_out(found: Tree) -> Tree:
    """Leave out the sorted folder: a run that was killed before its manifest leaves one, without an image."""
    return {name: value for name, value in found.items() if name.partition("/")[0] != "out"}


def check(room: Path, kept: Path, original: Tree, complete: Tree, way: Way) -> str:
    """Return what is wrong after a kill; "" for nothing."""
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(room, kept, symlinks=True)
    planned = (room / "out" / NAME).is_file()
    undo_pile(room)
    if (tree(room) if planned else _without_out(tree(room))) != original:
        return "undoing does not restore the tree"
    _restore(room, kept)
    sort_pile(room, way)
    if tree(room).keys() != complete.keys():
        return "going on does not finish the sorting"
    undo_pile(room)
    return "" if _without_out(tree(room)) == original else "undoing what was finished does not restore the tree"


def kill_sorts(kills: int, chance: random.Random, room: Path) -> dict[str, list[Outcome]]:
    """Kill each operation in turn; return the outcomes by its name."""
    operations: dict[str, tuple[Way, Callable[[Path], None], bool]] = {
        "sort --copy": ("copy", partial(sort_pile, way="copy"), False),
        "sort --move": ("move", partial(sort_pile, way="move"), False),
        "unsort after --move": ("move", undo_pile, True),
    }
    outcomes: dict[str, list[Outcome]] = {name: [] for name in operations}
    for number in range(kills):
        name = list(operations)[number % len(operations)]
        way, act, sorted_before = operations[name]
        scratch = room / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        write_pile(scratch)
        original = tree(scratch)
        began = time.perf_counter()
        sort_pile(scratch, way)
        seconds, complete = time.perf_counter() - began, tree(scratch)
        if not sorted_before:
            undo_pile(scratch)
        done = run_killed(act, scratch, _moment(chance, seconds, in_time=number % 2 == 0))
        found = "new" if done else "old"
        outcomes[name].append(Outcome(found, check(scratch, room / "kept", original, complete, way)))
    return outcomes


def _moment(chance: random.Random, seconds: float, *, in_time: bool) -> Moment:
    return AtTime(chance.random() * seconds) if in_time else AtLine(1 + int(chance.random() * _LINES * IMAGES))
