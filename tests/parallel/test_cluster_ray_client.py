"""The same bytes on a Ray cluster that this process is no part of, through Ray's client: `make test-cluster`.

In a run of its own: after a session of the client, a process cannot join a cluster as one of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.load.server import free_port
from hycal.errors import HyCalError
from hycal.parallel.cluster import run_each
from tests.parallel.cluster_checks import check_embedding, check_grid, check_learning

ray = pytest.importorskip("ray", reason="needs ray: run `make test-cluster`")
ray_cluster = pytest.importorskip("ray.cluster_utils")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:  # the client does not tell workers where its modules are
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")  # else the process for a session now and then hangs at its start
        head = {"num_cpus": 1, "ray_client_server_port": port}
        cluster = ray_cluster.Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=1)
    yield f"ray://127.0.0.1:{port}"
    cluster.shutdown()


def test_embedding(address: str, tmp_path: Path) -> None:
    check_embedding(tmp_path, address)


def test_learning(address: str, tmp_path: Path) -> None:
    check_learning(tmp_path, address)


def test_grid(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_grid(tmp_path, address, monkeypatch)


def test_a_session_that_does_not_start_is_asked_for_again(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As happens on a cluster whose head runs without the setting above: the process for a session dies at once."""
    start, failures = ray.init, iter([ConnectionAbortedError, ConnectionAbortedError])

    def unreliable(**settings: Any) -> Any:
        for failure in failures:
            raise failure("Initialization failure from server")
        return start(**settings)

    monkeypatch.setattr(ray, "init", unreliable)
    assert sorted(run_each(abs, [-1, -2], cluster=address)) == [(0, 1), (1, 2)]


def test_a_cluster_that_never_gives_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: Any) -> Any:
        raise ConnectionAbortedError("Initialization failure from server")

    monkeypatch.setattr(ray, "init", never)
    with pytest.raises(HyCalError, match="Cannot join"):
        list(run_each(abs, [-1], cluster="ray://127.0.0.1:1"))
