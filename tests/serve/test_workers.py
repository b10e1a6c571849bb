"""Several processes answer over one read-only model; one that is killed is replaced, and none is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.load.server import free_port, served
from hycal import NCM, HyCalError
from hycal.cli import app
from hycal.project import Project
from hycal.serve import workers
from hycal.serve.security import Access
from hycal.serve.server import listen

PATIENCE = 60
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to find the workers")


@pytest.fixture
def model(tmp_path):
    """A model of embeddings that names no encoder: nothing large is loaded."""
    path = tmp_path / "m.hycal"
    NCM().fit(np.eye(8), ["a/x", "a/y"] * 4, domain="a").save(path)
    return path


def workers_of(supervisor: int) -> set[int]:
    """The processes that answer: children of the supervisor that are not multiprocessing's tracker, nor dead."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == supervisor and fields[0] != "Z" and b"spawn_main" in command:
            found.add(int(entry.name))
    return found


def until(condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
    return found


def alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def ask(port: int) -> str:
    with httpx.Client(timeout=PATIENCE) as client:  # a new connection: any worker may take it
        answer = client.post(f"http://127.0.0.1:{port}/api/classify-embeddings", json={"rows": [np.eye(8)[0].tolist()]})
    assert answer.status_code == 200, answer.text
    return answer.json()["model"]


def counted(port: int) -> dict[str, float]:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_a_killed_worker_is_replaced_and_the_others_go_on(model):
    with served(model, "--read-only", "--workers", "2") as server:
        first = until(lambda: len(found := workers_of(server.process)) == 2 and found)
        for _ in range(10):
            ask(server.port)
        key = 'hycal_requests_total{method="POST",route="/api/classify-embeddings",status="200"}'
        assert counted(server.port)[key] == 10  # of both workers
        killed = min(first)
        os.kill(killed, signal.SIGKILL)
        for _ in range(10):
            ask(server.port)
        second = until(lambda: len(found := workers_of(server.process)) == 2 and killed not in found and found)
        assert counted(server.port)[key] == 20 and counted(server.port)["hycal_requests_open"] == 1
        assert httpx.post(f"http://127.0.0.1:{server.port}/api/undo").status_code == 403
        assert httpx.get(f"http://127.0.0.1:{server.port}/api/health").json()["status"] == "ok"

        changed = Project(model).forget("a/y").after
        assert {ask(server.port) for _ in range(10)} == {changed}
    assert not any(map(alive, first | second))
    assert "worker" in model.with_name("server.log").read_text()  # the kill is in the log


def test_workers_end_when_their_supervisor_is_killed(model):
    with (
        pytest.raises(RuntimeError, match="died with code -9"),
        served(model, "--read-only", "--workers", "2") as server,
    ):
        ask(server.port)
        children = until(lambda: len(found := workers_of(server.process)) == 2 and found)
        os.kill(server.process, signal.SIGKILL)
        until(lambda: not any(map(alive, children)))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--workers", "2"], "Add --read-only"),
        (["--read-only", "--pile", "."], "--pile is for a server whose model changes"),
        (["--read-only", "--method", "NCM"], "--method is for a server whose model changes"),
    ],
)
def test_options_that_do_not_go_together(model, options, reason):
    done = CliRunner().invoke(app, ["serve", str(model), *options])
    assert done.exit_code == 1 and reason in " ".join(done.stderr.split())


def test_a_read_only_server_makes_no_model(tmp_path):
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "none.hycal"), "--read-only"])
    assert done.exit_code == 1 and "There is no model" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_server_none_of_whose_workers_gets_ready_ends_with_the_reason(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(workers, "MOST_FAILURES", 0)
    access = Access()
    with pytest.raises(HyCalError, match="No process of this server gets ready; the last one ended with code 1"):
        workers.run_workers(workers.ReadOnlyModel(tmp_path / "none"), access, listen(access, free_port()), workers=1)
    assert "There is no model" in capfd.readouterr().err


def test_a_port_is_taken_at_once():
    access, port = Access(), free_port()
    with listen(access, port), pytest.raises(HyCalError, match="choose another port"):
        listen(access, port)
