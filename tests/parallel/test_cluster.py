"""The interface for parallel work on local processes; the same checks run on real clusters with `make test-cluster`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hycal import HyCal, HyCalError, RanPAC
from hycal.embedding import EmbeddingCache, ImageFile, ImageRow, embed, embed_sharded
from hycal.embedding.sources import image_files
from hycal.parallel.cluster import run_each
from hycal.scale.shards import learn_shards
from hycal.testing.streams import Stream
from tests.parallel.cluster_checks import check_embedding, check_grid, check_learning
from tests.parallel.dying_workers import begun
from tests.support.encoders import TinyEncoder
from tests.support.images import make_folder, picture

pytestmark = pytest.mark.filterwarnings("ignore:.*worker stopped while some jobs were given:UserWarning")


def test_embedding_survives_a_killed_worker(tmp_path: Path) -> None:
    check_embedding(tmp_path, "local:2", TinyEncoder)


def test_learning_survives_a_killed_worker(tmp_path: Path) -> None:
    check_learning(tmp_path, "local:2")


def test_the_grid_survives_a_killed_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_grid(tmp_path, "local:2", monkeypatch)


def test_every_piece_is_done(tmp_path: Path) -> None:
    assert dict(run_each(partial(begun, tmp_path), range(5), cluster="local:2")) == {n: n**2 for n in range(5)}


@pytest.mark.parametrize("cluster", ["local:1", "local:2"])
def test_an_error_of_the_work_is_the_callers(tmp_path: Path, cluster: str) -> None:
    with pytest.raises(HyCalError, match="five is refused"):
        list(run_each(partial(begun, tmp_path), [1, 5], cluster=cluster))


def test_a_piece_that_always_kills_its_worker_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match=r"1 of 2 pieces of work, begun 3 times on 'local:2', did not come back"):
        list(run_each(partial(begun, tmp_path), [3, 7], cluster="local:2"))
    assert len(list(tmp_path.glob("7-*"))) >= 3


@pytest.mark.parametrize("cluster", ["", "slurm:1", "local:0", "local:many", "ray", "dask:"])
def test_a_name_of_no_cluster_is_refused(cluster: str) -> None:
    with pytest.raises(HyCalError, match="expected"):
        list(run_each(abs, [1], cluster=cluster))


@pytest.mark.parametrize("cluster", ["ray:auto", "dask:tcp://localhost:1"])
def test_a_missing_library_is_explained(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = cluster.partition(":")[0]
    monkeypatch.setitem(__import__("sys").modules, {"ray": "ray", "dask": "distributed"}[scheme], None)
    with pytest.raises(HyCalError, match=rf"pip install \"hycal\[{scheme}\]\""):
        list(run_each(abs, [1], cluster=cluster))


def test_a_finished_shard_that_nobody_took_in_is_used(tmp_path: Path) -> None:
    """What is left of a run whose caller was killed."""
    images = make_folder(tmp_path / "images", images=6)
    sources = [ImageFile(path) for path in image_files(images)]
    encoder = TinyEncoder()
    with EmbeddingCache.of(encoder, tmp_path / "cache") as cache:
        kept = cache.add
        cache.add = lambda keys, rows: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            embed_sharded(sources, TinyEncoder, store=cache, cluster="local:1", images_per_shard=4)
        cache.add = kept  # type: ignore[method-assign]
        (left,) = cache.incoming.glob("*.npz")
        (left.parent / "damaged.npz").write_bytes(left.read_bytes()[:-20])
        result = embed_sharded(sources, TinyEncoder, store=cache, cluster="local:1", images_per_shard=4)
    assert 0 < result.encoded < 12
    assert result.rows.tobytes() == embed(sources, encoder).rows.tobytes()
    assert not list(cache.incoming.iterdir())


def test_a_worker_with_another_encoder_is_refused(tmp_path: Path) -> None:
    sources = [ImageFile(path) for path in image_files(make_folder(tmp_path / "images"))]
    with (
        EmbeddingCache.of(TinyEncoder(), tmp_path / "cache") as cache,
        pytest.raises(HyCalError, match="same weights"),
    ):
        embed_sharded(sources, partial(TinyEncoder, seed=1), store=cache, cluster="local:1")


def test_a_row_of_an_array_travels_alone(tmp_path: Path) -> None:
    arrays = np.stack([np.asarray(picture(seed)) for seed in range(7)])
    sources = [ImageRow(arrays, number, "seven") for number in range(7)]
    with EmbeddingCache.of(TinyEncoder(), tmp_path) as cache:
        result = embed_sharded(sources, TinyEncoder, store=cache, cluster="local:2", images_per_shard=3)
    assert result.rows.tobytes() == embed(sources, TinyEncoder()).rows.tobytes()


def test_shards_that_do_not_fit_leave_the_model_as_it_was() -> None:
    one, other = (Stream.synthetic(0, shots=[[2, 2]], width=width).steps[0] for width in (8, 16))
    model = HyCal().partial_fit(one.X, one.y, domain=one.domain, text=one.text)
    with pytest.raises(HyCalError, match="8 and 16 dimensions"):
        learn_shards(model, [other], cluster="local:1")
    assert model.counts_.tolist() == [2, 2]
    with pytest.raises(HyCalError, match="cannot learn shards apart"):
        learn_shards(RanPAC(), [one], cluster="local:1")
