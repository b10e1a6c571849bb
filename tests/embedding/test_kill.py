"""`hycal embed` with its own encoder, killed at ten random moments and resumed, gives the bytes of a calm run."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.images import make_folder

KILLS = 10
IMAGES = 80

# Imports hycal once, then runs the real command in a process of its own for each line of arguments. Shards are
# written after every batch, not every 15 s: so kills fall before, inside and between writes.
LAUNCHER = """
import json, os, sys
from hycal.cli import app
from hycal.embedding import lanes
lanes._SECONDS_PER_SHARD = 0
for line in sys.stdin:
    child = os.fork()
    if not child:
        app(json.loads(line), prog_name="hycal")
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Launcher:
    """Starts `hycal` and waits for it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, *arguments: object) -> int:
        """Return the id of the new process."""
        self._process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def wait(self) -> int:
        """Return the exit code, or minus the signal that ended it."""
        return os.waitstatus_to_exitcode(int(self._process.stdout.readline()))


@contextmanager
def launcher(errors: Path) -> Iterator[Launcher]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        errors.open("w") as file,
        subprocess.Popen([sys.executable, "-c", LAUNCHER], stderr=file, text=True, **pipes) as process,
    ):
        yield Launcher(process)


def shards(cache: Path) -> set[Path]:
    return set(cache.glob("shards/*/*"))


def wait_for_shards(cache: Path, before: set[Path], more: int) -> None:
    """Wait until the run wrote so many shards: a moment of its work, not of a clock, so no machine is too fast."""
    patience = time.monotonic() + 60
    while len(shards(cache) - before) < more:
        assert time.monotonic() < patience, "the run writes no shards"
        time.sleep(0.001)


def test_kill_and_resume(tmp_path: Path) -> None:
    make_folder(tmp_path / "images", images=IMAGES // 2)
    arguments = ["embed", tmp_path / "images", "--batch", 2]
    killed = [*arguments, "--out", tmp_path / "killed.npz", "--cache", tmp_path / "killed"]
    calm = [*arguments, "--out", tmp_path / "calm.npz", "--cache", tmp_path / "calm"]
    moments = random.Random(0)
    with launcher(tmp_path / "errors") as hycal:
        for _ in range(KILLS):
            before = shards(tmp_path / "killed")
            process = hycal.start(*killed)
            wait_for_shards(tmp_path / "killed", before, moments.randint(1, 2))
            time.sleep(moments.uniform(0, 0.02))
            os.kill(process, signal.SIGKILL)
            assert hycal.wait() == -signal.SIGKILL
        assert not (tmp_path / "killed.npz").exists()
        hycal.start(*killed)
        assert hycal.wait() == 0
        said = (tmp_path / "errors").read_text()
        hycal.start(*calm)
        assert hycal.wait() == 0
    encoded, known = map(int, re.search(r"(\d+) images encoded .*, (\d+) embedded before", said).groups())
    assert encoded + known == IMAGES and encoded > 0 and known >= KILLS
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "calm.npz").read_bytes()
    assert not list(tmp_path.rglob("*.part"))
