"""Changes move from the journal into the model file when nobody is changing anything, when they are many, and when the
server ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hycal.errors import HyCalError
from hycal.project import Project
from hycal.project.project import MOST_FRAMES

SECONDS_OF_QUIET = 2.0
MANY = MOST_FRAMES // 2  # changes: beyond MOST_FRAMES, the next one would have to wait for the file
_log = logging.getLogger(__name__)


@contextmanager
def settling(project: Project, *, seconds: float = SECONDS_OF_QUIET) -> Iterator[None]:
    """Let the file take the journal in when the model did not change for some seconds, or often, and at the end."""
    ending = threading.Event()

    def work() -> None:
        last = project.state
        while not ending.wait(seconds):
            if project.state is last or project.waiting >= MANY:
                _settle(project)
            last = project.state

    thread = threading.Thread(target=work, name="hycal-settling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        _settle(project)


def _settle(project: Project) -> None:
    try:
        project.close()
    except (HyCalError, OSError) as error:  # the journal stays, and nothing is lost
        _log.warning("changes stay in the journal for now: %s", error)
