from pathlib import Path

import numpy as np
import pytest

from hycal.data import bundled
from hycal.data.bundled import read_domains
from hycal.data.embedded import EmbeddedDomain
from hycal.errors import HyCalError
from tools.build_xd8 import write_domains, write_view


def domain(name: str, seed: int) -> EmbeddedDomain:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(30, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.arange(30) % 3
    return EmbeddedDomain(name, rows[:20], labels[:20], rows[20:], labels[20:], ("a", "b", "ü"))


def test_round_trip_to_half_precision(tmp_path: Path) -> None:
    written = {name: domain(name, seed) for seed, name in enumerate(("beta", "alpha"))}
    write_domains(tmp_path, written, provenance={"encoder": "tiny"})
    back = read_domains(tmp_path)
    assert list(back) == ["alpha", "beta"]
    for name, one in back.items():
        assert one.class_names == ("a", "b", "ü") and np.array_equal(one.test_y, written[name].test_y)
        assert one.train_x.dtype == np.float32 and np.allclose(one.train_x, written[name].train_x, atol=1e-3)
        assert np.allclose(np.linalg.norm(one.test_x, axis=1), 1, atol=1e-6)


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="missing or damaged"):
        read_domains(tmp_path)
    write_domains(tmp_path, {"alpha": domain("alpha", 0)}, provenance={})
    (tmp_path / "alpha.npz").write_bytes(b"PK")
    with pytest.raises(HyCalError, match=r"alpha\.npz"):
        read_domains(tmp_path)


def test_what_is_shipped() -> None:
    xd8 = bundled.load_xd8()
    assert list(xd8) == sorted(xd8) and len(xd8) == 8
    assert sum(len(one.class_names) for one in xd8.values()) == 223
    assert sum(len(one.train_y) for one in xd8.values()) == 7371
    assert sum(len(one.test_y) for one in xd8.values()) == 4449
    assert sum(path.stat().st_size for path in bundled._folder().glob("*.*")) <= 12_000_000
    for one in xd8.values():
        assert one.train_x.shape == (len(one.train_y), 512) and np.isfinite(one.test_x).all()
        assert set(one.test_y) <= set(one.train_y) == set(range(len(one.class_names)))
    assert bundled.xd8_provenance()["encoder"] == "clip-vit-b16-w8"


def test_views_have_the_rows_of_the_same_images(tmp_path: Path) -> None:
    written, other = {"alpha": domain("alpha", 0)}, {"alpha": domain("alpha", 5)}
    write_domains(tmp_path, written, provenance={"encoder": "tiny"})
    write_view(tmp_path, "small", other, provenance={"dimension": 16})
    back = bundled.read_view(tmp_path, "small", read_domains(tmp_path))["alpha"]
    assert np.allclose(back.train_x, other["alpha"].train_x, atol=5e-3)
    assert np.allclose(np.linalg.norm(back.test_x, axis=1), 1, atol=1e-6)
    assert bundled._provenance(tmp_path)["views"] == {"small": {"dimension": 16}}
    (tmp_path / "views" / "small.npz").write_bytes(b"PK")
    with pytest.raises(HyCalError, match=r"small\.npz"):
        bundled.read_view(tmp_path, "small", written)


def test_shipped_views_stand_side_by_side() -> None:
    names = bundled.xd8_encoders()
    widths = [512, *(bundled.xd8_provenance()["views"][name]["dimension"] for name in names[1:])]
    alone, together = bundled.load_xd8(), bundled.load_xd8(names)
    for name, one in together.items():
        assert one.train_x.shape == (len(one.train_y), sum(widths))
        assert np.array_equal(one.test_x[:, :512], alone[name].test_x)
    assert sum(path.stat().st_size for path in bundled._folder().rglob("*.*")) <= 25_000_000
    with pytest.raises(HyCalError, match="no embeddings by 'nothing'"):
        bundled.load_xd8(["nothing"])
