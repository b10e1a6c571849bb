import resource
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from hycal.embedding import EmbeddingCache
from hycal.errors import HyCalError
from hycal.validation import Floats


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def rows(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


def opened(folder: Path, fingerprint: str = "a", dimension: int = 4) -> EmbeddingCache:
    return EmbeddingCache(folder, fingerprint=fingerprint, dimension=dimension)


def test_rows_come_back_after_reopening_in_any_order(tmp_path: Path) -> None:
    first, second = rows(700, 1), rows(3, 2)
    with opened(tmp_path) as cache:
        cache.add([key(i) for i in range(700)], first)
        cache.add([key(i) for i in range(700, 703)], second)
    with opened(tmp_path) as cache:
        assert len(cache) == 703
        both = np.vstack([first, second])
        order = np.random.default_rng(3).permutation(703)
        assert cache.get([key(int(i)) for i in order]).tobytes() == both[order].tobytes()
        assert cache.known() == {key(i) for i in range(703)}


def test_spaces_do_not_mix(tmp_path: Path) -> None:
    with opened(tmp_path, "a") as one, opened(tmp_path, "b", 3) as other:
        one.add([key(1)], rows(1))
        other.add([key(1)], np.ones((1, 3), dtype=np.float32))
        assert other.get([key(1)]).shape == (1, 3)
        assert key(2) not in one
    with pytest.raises(HyCalError, match="One fingerprint means one space"):
        opened(tmp_path, "a", 5)


def test_the_first_row_of_an_image_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1)], rows(1, 1))
        cache.add([key(1), key(2)], rows(2, 2))
        assert np.array_equal(cache.get([key(1), key(2)]), [rows(1, 1)[0], rows(2, 2)[1]])


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        for number in range(5):
            one.add([key(number)], rows(1, number))
            other.add([key(100 + number)], rows(1, 100 + number))
        assert len(one) == len(other) == 10
        assert np.array_equal(one.get([key(104)]), rows(1, 104))


@pytest.mark.parametrize("damage", ["remove", "truncate", "flip"])
def test_a_damaged_shard_is_forgotten_and_the_rest_kept(tmp_path: Path, damage: str) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1)], rows(1, 1))
    shard = next(tmp_path.glob("shards/*/*.npy"))
    with opened(tmp_path) as cache:
        cache.add([key(2)], rows(1, 2))
    content = shard.read_bytes()
    if damage == "remove":
        shard.unlink()
    else:
        shard.write_bytes(content[:-3] if damage == "truncate" else content[:-1] + b"\x99")
    with opened(tmp_path) as cache:
        assert cache.known() == {key(2)}
        cache.add([key(1)], rows(1, 1))
        assert np.array_equal(cache.get([key(1), key(2)]), [rows(1, 1)[0], rows(1, 2)[0]])


def test_what_a_killed_run_left_is_cleaned(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1)], rows(1, 1))
    folder = next(tmp_path.glob("shards/*"))
    (folder / ".0123.npy.0.part").mkdir()
    (folder / ".0123.npy.0.part" / "content").write_bytes(b"half")
    (folder / "4567.npy").write_bytes(b"renamed, never entered")
    with opened(tmp_path) as cache:
        assert len(cache) == 1
    assert len(list(folder.iterdir())) == 1


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with opened(tmp_path / "good") as cache:
        with pytest.raises(HyCalError, match="Embed it first"):
            cache.get([key(1)])
        with pytest.raises(HyCalError, match="dimension"):
            cache.add([key(1)], np.ones((1, 7), dtype=np.float32))
        assert len(cache) == 0
    (tmp_path / "file").write_text("x")
    with pytest.raises(HyCalError, match="Choose another folder"):
        opened(tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.sqlite").write_bytes(b"not a database, but long enough to be read as one" * 50)
    with pytest.raises(HyCalError, match="cannot be used"):
        opened(tmp_path / "other")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    index = sqlite3.connect(tmp_path / "index.sqlite")
    index.execute("PRAGMA user_version = 99")
    index.close()
    with pytest.raises(HyCalError, match="schema version 99"):
        opened(tmp_path)


def test_many_shards_need_few_open_files(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with opened(tmp_path) as cache:
        for number in range(100):
            cache.add([key(number)], rows(1, number))
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, hard))
        try:
            found = cache.get([key(number) for number in range(100)])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert np.array_equal(found, np.concatenate([rows(1, number) for number in range(100)]))


def test_a_disk_that_refuses_leaves_the_cache_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as cache:
        cache.add([key(1)], rows(1, 1))
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(HyCalError, match=r"No space left.*Rows written before are kept"):
                cache.add([key(2)], rows(1, 2))
        assert cache.known() == {key(1)} and len(list(tmp_path.glob("shards/*/*"))) == 1
        cache.add([key(2)], rows(1, 2))
        assert len(cache) == 2
