"""Many clients at once, and one that changes the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchmarks.load.clients import Tally, ask
from benchmarks.load.serving import Served

_CORRECTING = 0.05  # seconds between an answer and the next correction


async def load(
    server: Served, requests: Sequence[bytes], changes: Sequence[bytes], *, clients: int, seconds: float
) -> tuple[Tally, Tally]:
    """Return what the clients saw, and what the correcting one did, if there is anything to correct."""
    tally, changing = Tally(), Tally()
    until = time.monotonic() + seconds
    correcting = [ask(server.port, changes, changing, until=until, pause=_CORRECTING)] if changes else []
    await asyncio.gather(*correcting, *(ask(server.port, requests, tally, until=until) for _ in range(clients)))
    return tally, changing
