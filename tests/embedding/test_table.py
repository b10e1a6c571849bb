from pathlib import Path

import numpy as np
import pytest

from hycal.embedding import EmbeddingTable, read_table, write_table
from hycal.errors import HyCalError


def table(fingerprint: str = "f") -> EmbeddingTable:
    names = np.array(["a/1.jpg", "b/ü.jpg"])
    return EmbeddingTable(np.eye(2, 4, dtype=np.float32), names, names, names, names, "tiny", fingerprint)


def test_round_trip_and_equal_bytes(tmp_path: Path) -> None:
    write_table(tmp_path / "one.npz", table())
    write_table(tmp_path / "two.npz", table())
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    back = read_table(tmp_path / "one.npz", fingerprint="f")
    assert back.files.tolist() == ["a/1.jpg", "b/ü.jpg"] and back.encoder == "tiny"
    assert np.array_equal(back.rows, table().rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.npz", "two.npz"]


def test_another_space_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "one.npz", table("f"))
    with pytest.raises(HyCalError, match="two encoders cannot be compared"):
        read_table(tmp_path / "one.npz", fingerprint="g")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"nonsense")
    with pytest.raises(HyCalError, match="hycal embed"):
        read_table(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", rows=np.eye(2))
    with pytest.raises(HyCalError, match="hycal embed"):
        read_table(tmp_path / "y.npz")
    with pytest.raises(HyCalError, match="does not exist"):
        write_table(tmp_path / "no" / "z.npz", table())
