"""Compaction: changes move from the journal into the model file.

It happens when the model has not changed for some seconds, when the journal is long, and when the server ends. The same
thread looks at the file every time: what another program forgot for good leaves the memory also if nobody asks.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from hycal.errors import HyCalError
from hycal.project import Project
from hycal.project.state_file import MOST_FRAMES

SECONDS_OF_QUIET = 2.0
MANY_CHANGES = MOST_FRAMES // 2  # at MOST_FRAMES the next change would have to wait for the file
_log = logging.getLogger(__name__)


@contextlib.contextmanager
def compacting(project: Project, *, seconds: float = SECONDS_OF_QUIET) -> Iterator[None]:
    """Compact the project in a thread while the block runs, and once more at its end."""
    ending = threading.Event()

    def work() -> None:
        last = project.state.version  # the state itself would hold images that are forgotten meanwhile
        while not ending.wait(seconds):
            with contextlib.suppress(HyCalError, OSError):  # the next request reports it
                project.current()
            if project.state.version == last or project.waiting >= MANY_CHANGES:
                _compact(project)
            last = project.state.version

    thread = threading.Thread(target=work, name="hycal-compaction", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        _compact(project)


def _compact(project: Project) -> None:
    try:
        project.close()
    except (HyCalError, OSError) as error:  # the journal stays, so nothing is lost
        _log.warning("changes stay in the journal for now: %s", error)
