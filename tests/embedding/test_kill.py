"""A run killed with SIGKILL at ten random moments, and then resumed, gives the bytes of a run left alone."""

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.embedding.tiny import make_folder

PROGRAM = Path(__file__).with_name("tiny.py")
KILLS = 10


def start(*arguments: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(PROGRAM), *map(str, arguments)])


def test_kill_and_resume(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "images", classes=3, images=150)
    assert start(folder, tmp_path / "calm", tmp_path / "calm.npy").wait() == 0
    moments = random.Random(0)
    killed = 0
    for _ in range(KILLS):
        process = start(folder, tmp_path / "killed", tmp_path / "killed.npy")
        index = tmp_path / "killed" / "index.sqlite"
        while not index.exists() and process.poll() is None:  # imports are no interesting moment
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.12))
        process.kill()
        killed += process.wait() != 0
    assert killed == KILLS
    assert start(folder, tmp_path / "killed", tmp_path / "killed.npy").wait() == 0
    assert (tmp_path / "killed.npy").read_bytes() == (tmp_path / "calm.npy").read_bytes()
    assert not list((tmp_path / "killed").rglob("*.part"))
