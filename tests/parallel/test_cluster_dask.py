"""The same bytes on a real Dask cluster of three processes, one worker killed: `make test-cluster`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hycal.errors import HyCalError
from hycal.parallel.cluster import run_each
from tests.parallel.cluster_checks import check_embedding, check_grid, check_learning

distributed = pytest.importorskip("distributed", reason="needs dask: run `make test-cluster`")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield f"dask:{cluster.scheduler_address}"


def test_embedding(scheduler: str, tmp_path: Path) -> None:
    check_embedding(tmp_path, scheduler)


def test_learning(scheduler: str, tmp_path: Path) -> None:
    check_learning(tmp_path, scheduler)


def test_grid(scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_grid(tmp_path, scheduler, monkeypatch)


def own_process(piece: int) -> int:
    return os.getpid()


def test_one_worker_does_the_work_and_not_the_caller() -> None:
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        done = dict(run_each(own_process, range(3), cluster=f"dask:{cluster.scheduler_address}"))
    assert len(done) == 3 and os.getpid() not in done.values()


def test_nobody_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), pytest.raises(HyCalError, match="Cannot join"):
        list(run_each(abs, [1], cluster="dask:tcp://127.0.0.1:9"))
