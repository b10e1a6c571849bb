"""The same bytes on a Ray cluster that this process is no part of, through Ray's client: `make test-cluster`.

In a run of its own: after a session of the client, a process cannot join a cluster as one of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.load.serving import free_port
from tests.cluster.checks import check_embedding, check_grid, check_learning

ray_cluster = pytest.importorskip("ray.cluster_utils", reason="needs ray: run `make test-cluster`")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:  # the client does not tell workers where its modules are
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "300")  # a busy machine starts a server in minutes
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
