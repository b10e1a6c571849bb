import resource
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from hycal.embedding import EmbeddingCache
from hycal.embedding.cache import forget_images
from hycal.errors import HyCalError
from hycal.validation import Floats


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def rows(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


def opened(folder: Path, fingerprint: str = "a", dimension: int = 4) -> EmbeddingCache:
    return EmbeddingCache(folder, fingerprint=fingerprint, dimension=dimension)


def full_disk(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


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
        resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/dev/fd").iterdir()]) + 20, hard))
        try:
            found = cache.get([key(number) for number in range(100)])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert np.array_equal(found, np.concatenate([rows(1, number) for number in range(100)]))


def test_a_disk_that_refuses_leaves_the_cache_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1)], rows(1, 1))
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full_disk)
            with pytest.raises(HyCalError, match=r"No space left.*Rows written before are kept"):
                cache.add([key(2)], rows(1, 2))
        assert cache.known() == {key(1)} and len(list(tmp_path.glob("shards/*/*"))) == 1
        cache.add([key(2)], rows(1, 2))
        assert len(cache) == 2


def content_of(folder: Path) -> bytes:
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

    left = content_of(tmp_path)
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
        assert {path.stem for path in cache.incoming.iterdir()} == {"other"}, "the damaged one may hold it"


@pytest.mark.parametrize("index", ["whole", "lost"])
def test_what_killed_runs_left_goes_as_well(tmp_path: Path, index: str) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1), key(2)], rows(2, 1))
        cache.incoming.mkdir(parents=True)
        shards = next(tmp_path.glob("shards/*"))
    for folder in (shards, cache.incoming):
        (folder / ".0123.npy.0.part").mkdir()
        (folder / ".0123.npy.0.part" / "content").write_bytes(rows(1, 7).tobytes())
    (shards / f"{'a' * 64}.npy").write_bytes(rows(1, 7).tobytes())  # the kill came before its index entry, or after
    (shards / "a note.txt").write_text("not ours")
    if index == "lost":
        (tmp_path / "index.sqlite").unlink()
    forget_images(tmp_path, [key(1)])
    left = content_of(tmp_path)
    assert rows(1, 7).tobytes() not in left and rows(2, 1)[0].tobytes() not in left
    assert (shards / "a note.txt").exists() and not list(tmp_path.rglob("*.part"))
    with opened(tmp_path) as cache:
        assert cache.known() == ({key(2)} if index == "whole" else set())


def test_a_killed_forgetting_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1), key(2)], rows(2, 1))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hycal.embedding.cache._forget_files", killed)  # the index has a new shard, the old one is there
        with pytest.raises(KeyboardInterrupt):
            forget_images(tmp_path, [key(1)])
    assert rows(2, 1)[0].tobytes() in content_of(tmp_path)
    forget_images(tmp_path, [key(1)])
    assert rows(2, 1)[0].tobytes() not in content_of(tmp_path)


CHANGED = {
    "a position": "UPDATE images SET position = 1 - position",
    "an image": "UPDATE images SET content = zeroblob(32) WHERE position = 0",
    "a shard of an image": "UPDATE images SET shard = 77 WHERE position = 0",
    "a space of an image": "UPDATE images SET space = 77 WHERE position = 0",
    "a type": "UPDATE images SET position = 'x' WHERE position = 0",
    "the hash of a shard": "UPDATE shards SET sha256 = 'x' || sha256",
    "the number of rows": "UPDATE shards SET n_rows = 1",
    "the space of a shard": "UPDATE shards SET space = 77",
    "a seal": "UPDATE shards SET seal = 'x'",
    "a fingerprint": "UPDATE spaces SET fingerprint = 'x'",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_changed_values_of_the_index_never_give_another_row(tmp_path: Path, change: str) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1), key(2)], rows(2, 1))
    index = sqlite3.connect(tmp_path / "index.sqlite")
    index.execute(change)
    index.commit()
    index.close()
    with opened(tmp_path) as cache:
        missing = {key(1), key(2)} - cache.known()
        assert missing, "it was noticed"
        for number in (1, 2):
            if key(number) in missing:
                cache.add([key(number)], rows(2, 1)[number - 1 : number])
        assert np.array_equal(cache.get([key(1), key(2)]), rows(2, 1))
    with opened(tmp_path) as cache:
        assert np.array_equal(cache.get([key(1), key(2)]), rows(2, 1))


def test_an_index_of_the_first_version_is_sealed(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1), key(2)], rows(2, 1))
    index = sqlite3.connect(tmp_path / "index.sqlite")
    index.execute("ALTER TABLE shards DROP COLUMN seal")
    index.execute("PRAGMA user_version = 1")
    index.commit()
    index.close()
    with opened(tmp_path) as cache:
        assert np.array_equal(cache.get([key(2), key(1)]), rows(2, 1)[::-1])


def test_no_cache_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert forget_images(tmp_path / "none", [key(1)]) == 0
    assert not (tmp_path / "none").exists()


def test_forgetting_on_a_full_disk_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as cache:
        cache.add([key(1), key(2)], rows(2, 1))
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full_disk)
        with pytest.raises(HyCalError, match="No space left"):
            forget_images(tmp_path, [key(1)])
    with opened(tmp_path) as cache:
        assert np.array_equal(cache.get([key(1), key(2)]), rows(2, 1))
