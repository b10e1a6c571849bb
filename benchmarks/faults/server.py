"""Kill a real server while clients change the model, and check that every answered change is on the disk."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import uvicorn

from benchmarks.faults.cases import SHOTS, image, learned, model
from benchmarks.faults.kills import Outcome
from hycal.project import Project
from hycal.serve.app import make_app
from hycal.serve.service import Service

CLIENTS = 2
_PATIENCE = 30


def kill_server(folder: Path, *, after: float) -> Outcome:
    """Serve the model, let clients change it, kill the server some seconds after the first answer, check the files."""
    learned(folder)
    before = len(model(folder).state.history)
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        server = os.fork()
        if not server:
            _serve(folder, door)
    answered: list[str] = []
    clients = [threading.Thread(target=_change, args=(port, number, answered)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    until = time.monotonic() + _PATIENCE
    while not answered and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(after)
    os.kill(server, signal.SIGKILL)
    for client in clients:
        client.join()
    os.waitpid(server, 0)
    return _judged(Project(folder / "model.hycal"), before, answered)


def _judged(project: Project, before: int, answered: list[str]) -> Outcome:
    state = project.state
    kept = [entry.after for entry in state.history[before:]]
    if not answered:
        return Outcome("neither", "the server answered nothing")
    if not kept or state.hash != kept[-1]:
        return Outcome("neither", "the model is not the one that its history ends with")
    if not set(answered) <= set(kept) or len(kept) < len(answered):
        return Outcome("neither", "a change that was answered is lost")
    if len(kept) > len(answered) + CLIENTS:
        return Outcome("neither", "more changes than were asked for")
    project.forget("things/5")  # the lock of a killed process is free
    return Outcome("new" if len(kept) > len(answered) else "old")


def _serve(folder: Path, door: socket.socket) -> None:
    try:
        app = make_app(Service(model(folder, journal=True), None))
        uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[door])
    finally:
        os._exit(0)


def _change(port: int, client: int, answered: list[str]) -> None:
    """Change the model until the server is killed; keep the hash of the model in each answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    with suppress(OSError, http.client.HTTPException):
        for route, body in _requests(client):
            connection.request("POST", f"/api/{route}", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = json.loads(answer.read())
            if answer.status != 200:
                raise RuntimeError(f"{route} was answered with {answer.status}: {told}")
            answered.append(told["after"])


def _requests(client: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield corrections back and forth, which go to the journal, and sometimes a change that writes the whole file."""
    home, away = f"things/{10 + client}", f"things/{30 + client}"
    old, new = f"things/{20 + client}", f"things/new name {client}"
    identities = [image((10 + client) * SHOTS + shot).identity.hex() for shot in range(SHOTS // 2)]
    while True:
        yield from (("correct", {"image": identity, "label": away}) for identity in identities)
        yield "rename", {"old": old, "new": new}
        yield from (("correct", {"image": identity, "label": home}) for identity in identities)
        yield "rename", {"old": new, "new": old}
