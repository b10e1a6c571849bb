"""Images in a worker process: the same result, and a crash or an exhausted limit costs one answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hycal.embedding.preparation import SPARE_MEMORY, ImageOrder, Workers, prepare
from hycal.embedding.sources import ImageError
from hycal.encoders.preprocessing import Preprocessing
from tests.support.images import file_of, picture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes have no memory limit here")


def crash(image: Image.Image) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(image: Image.Image) -> None:
    os._exit(3)


def loop(image: Image.Image) -> None:
    while True:
        pass


def fill(image: Image.Image) -> None:
    np.ones(SPARE_MEMORY, np.uint8)


def chatter(image: Image.Image) -> np.ndarray:
    os.write(1, b"a library that prints")
    return np.zeros((3, 2, 2), np.float32)


def order(preprocess=Preprocessing(size=8, resize=8).apply, **options) -> ImageOrder:  # noqa: B008  never changed
    return ImageOrder(preprocess, **{"most_pixels": 10**6, "thumbnail": True, **options})


@pytest.fixture(scope="module")
def workers():
    made = Workers()
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_worker_returns_what_this_process_would(workers, kind):
    content = file_of(picture(1, size=(200, 100)), kind)
    for asked in (order(), order(thumbnail=False)):
        there, here = workers.prepare(content, asked), prepare(content, asked)
        assert there.tensor.dtype == np.float32
        assert np.array_equal(there.tensor, here.tensor)
        assert there.thumbnail == here.thumbnail
        assert bool(there.thumbnail) == asked.thumbnail


def test_an_image_that_cannot_be_used_has_the_same_problem(workers):
    for content, asked in ((b"no image", order()), (file_of(picture(1), "PNG"), order(most_pixels=100))):
        with pytest.raises(ImageError) as there:
            workers.prepare(content, asked)
        with pytest.raises(ImageError) as here:
            prepare(content, asked)
        assert str(there.value) == str(here.value)


@pytest.mark.parametrize(
    ("preprocess", "problem"),
    [(crash, "SIGSEGV"), (leave, "exit code 3"), (loop, "more than 0.1 s of processor time"), (fill, "memory")],
)
def test_a_crash_costs_one_answer(workers, preprocess, problem):
    content = file_of(picture(1), "PNG")
    with pytest.raises(ImageError, match=problem):
        workers.prepare(content, order(preprocess, seconds=0.1 if preprocess is loop else 10))
    assert workers.prepare(content, order()).tensor.shape == (3, 8, 8)


def test_a_worker_that_died_while_it_was_idle_is_replaced():
    workers = Workers()
    workers.start()
    worker = workers._take()
    workers._idle.put(worker)
    worker.process.kill()
    worker.process.wait()
    assert workers.prepare(file_of(picture(1), "PNG"), order()).tensor.shape == (3, 8, 8)
    workers.close()


def test_what_a_library_prints_is_no_reply(workers):
    assert workers.prepare(file_of(picture(1), "PNG"), order(chatter)).tensor.shape == (3, 2, 2)


def test_workers_end_with_their_process():
    program = (
        "from hycal.embedding.preparation import workers; pool = workers(); pool.start();"
        "print(pool._idle.get_nowait().process.pid, flush=True); import os; os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    until = time.monotonic() + 30
    while _runs(int(done.stdout)):
        assert time.monotonic() < until, "the worker goes on without its process"
        time.sleep(0.02)


def _runs(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:3]
    except OSError:
        return False
