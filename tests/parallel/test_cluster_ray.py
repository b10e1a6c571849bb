"""The same bytes on a real Ray cluster of three nodes, one worker killed: `make test-cluster`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hycal.parallel.cluster import run_each
from tests.parallel.cluster_checks import check_embedding, check_grid, check_learning

ray_cluster = pytest.importorskip("ray.cluster_utils", reason="needs ray: run `make test-cluster`")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    cluster = ray_cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


def test_embedding(nodes: Any, tmp_path: Path) -> None:
    check_embedding(tmp_path, f"ray:{nodes.address}")


def test_learning(nodes: Any, tmp_path: Path) -> None:
    check_learning(tmp_path, f"ray:{nodes.address}")


def test_grid(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_grid(tmp_path, f"ray:{nodes.address}", monkeypatch)


def slowly(folder: Path, piece: int) -> int:
    time.sleep(0.5)
    (folder / str(piece)).write_text(str(piece))
    return piece


def test_a_whole_node_is_lost(nodes: Any, tmp_path: Path) -> None:
    doomed = nodes.add_node(num_cpus=2)
    done = {}
    for number, result in run_each(partial(slowly, tmp_path), range(12), cluster=f"ray:{nodes.address}"):
        if not done:
            nodes.remove_node(doomed, allow_graceful=False)
        done[number] = result
    assert done == {number: number for number in range(12)}
    assert len(list(tmp_path.iterdir())) == 12
