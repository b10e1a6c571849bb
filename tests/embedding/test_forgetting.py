"""Forgetting in the cache: the rows are gone from every file, and the others are where they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hycal.embedding.forgetting import forget_images
from hycal.errors import HyCalError
from tests.embedding.test_cache import key, opened, rows


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_rows_leave_every_space_and_file(tmp_path: Path) -> None:
    one, other = rows(5, 1), rows(2, 2)
    with opened(tmp_path, "a") as cache:
        cache.add([key(number) for number in range(5)], one)
        cache.add([key(9)], rows(1, 3))
        cache.add([key(2), key(7)], rows(2, 4))  # 2 has a row already: this one is in the shard, and nobody's
    with opened(tmp_path, "b") as cache:
        cache.add([key(2), key(3)], other)
        cache.add([key(4)], rows(1, 5))
    untouched = {path for path in tmp_path.glob("shards/*/*.npy") if np.load(path).shape[0] == 1}

    assert forget_images(tmp_path, [key(2), key(4), key(1000)]) == 4

    left = everything(tmp_path)
    for row in (one[2], one[4], other[0], rows(2, 4)[0], rows(1, 5)[0]):
        assert row.tobytes() not in left
    assert key(2) not in left and key(4) not in left
    with opened(tmp_path, "a") as cache:
        assert cache.known() == {key(number) for number in (0, 1, 3, 7, 9)}
        found = cache.get([key(3), key(0), key(7), key(9), key(1)])
        assert np.array_equal(found, [one[3], one[0], rows(2, 4)[1], rows(1, 3)[0], one[1]])
        cache.add([key(2)], rows(1, 6))  # it may be learned again
        assert np.array_equal(cache.get([key(2)]), rows(1, 6))
    with opened(tmp_path, "b") as cache:
        assert np.array_equal(cache.get([key(3)]), other[1:])
    assert len([path for path in untouched if path.exists()]) == 1, "a shard that lost nothing was written again"


def test_what_workers_left_goes_as_well(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        cache.incoming.mkdir(parents=True)
        for name, number in (("wanted", 1), ("other", 2)):
            keys = np.frombuffer(key(number), np.uint8).reshape(1, -1)
            np.savez(cache.incoming / f"{name}.npz", keys=keys, rows=rows(1, number))
        (cache.incoming / "damaged.npz").write_bytes(b"nothing")
        assert forget_images(tmp_path, [key(1)]) == 1
        assert {path.stem for path in cache.incoming.iterdir()} == {"other", "damaged"}


def test_no_cache_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert forget_images(tmp_path / "none", [key(1)]) == 0
    assert not (tmp_path / "none").exists()


def test_a_disk_that_refuses_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as cache:
        cache.add([key(1), key(2)], rows(2, 1))
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(HyCalError, match="No space left"):
            forget_images(tmp_path, [key(1)])
    with opened(tmp_path) as cache:
        assert np.array_equal(cache.get([key(1), key(2)]), rows(2, 1))
