from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hycal.encoders
from hycal import HyCalError
from hycal.bench.domains import load_domains, read_domain, write_domain
from hycal.bench.embedding import embed_domain, is_embedded
from hycal.bench.settings import read_setting
from hycal.commands.bench import app
from hycal.data.catalog import list_datasets
from hycal.embedding.decoding import decode
from hycal.validation import Floats, unit_rows
from tests.support import datasets
from tests.support.encoders import TinyEncoder
from tests.support.images import picture
from tests.support.small_benchmark import small_domains, small_setting

LABELS = small_domains()["a"].train_y
ROWS = small_domains()["a"].train_x


def changed(row: int, value: float) -> Any:
    rows = ROWS.copy()
    rows[row] = value
    return rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_y": None}, "train_y is missing; expected whole numbers"),
        ({"train_y": LABELS[:, None]}, r"train_y is of shape \(48, 1\) and type int64; expected whole numbers"),
        ({"train_y": LABELS + 0.5}, "type float64; expected whole numbers"),
        ({"train_y": LABELS.astype(str)}, "expected whole numbers"),
        ({"train_y": LABELS[1:]}, r"train_x has shape \(48, 24\); expected \(47, 24\)"),
        ({"train_y": LABELS - 1}, "goes from -1 to 2; expected 0 to 3"),
        ({"train_y": LABELS % 3}, "no image of class 'class 3'"),
        ({"train_x": changed(5, np.nan)}, "row 5 is not finite"),
        ({"train_x": changed(5, 0.0)}, "row 5 is not finite or all zeros"),
        ({"train_x": ROWS[0]}, r"train_x is of shape \(24,\)"),
        ({"test_x": np.ones((32, 8))}, r"test_x has shape \(32, 8\); expected \(32, 24\)"),
        ({"class_names": np.array(["x", "y", "x", "z"])}, "class_names has 'x' twice"),
        ({"class_names": np.array("x")}, "expected names of shape"),
        ({"text": np.ones((3, 24))}, r"expected \(4, 24\)"),
        ({"text": np.full((4, 24), np.inf)}, "text: row 0 is not finite"),
    ],
)
def test_a_faulty_file_says_what_was_expected(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write_domain(tmp_path, small_domains()["a"])
    with np.load(path) as file:
        arrays = {**file, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(HyCalError, match=message) as failed:
        read_domain(tmp_path, "a")
    assert str(path) in str(failed.value)


def test_a_domain_replaces_domains_only(tmp_path: Path) -> None:
    for _ in range(2):
        path = write_domain(tmp_path, small_domains()["a"])
    path.write_bytes(b"my own")
    with pytest.raises(HyCalError, match="not replaced"):
        write_domain(tmp_path, small_domains()["a"])
    assert path.read_bytes() == b"my own"


def test_the_documentation_lists_every_array(tmp_path: Path) -> None:
    path = write_domain(tmp_path, replace(small_domains()["a"], space="tiny", examples=("QQ==",), images="0f"))
    text = (Path(__file__).parents[2] / "docs" / "reference" / "benchmark.md").read_text(encoding="utf-8")
    table = text[text.index("| array |") :].split("\n\n")[0]
    with np.load(path) as file:
        assert set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()))) == set(file)


def test_domains_of_different_width_are_not_learned_together(tmp_path: Path) -> None:
    for name, domain in small_domains().items():
        write_domain(tmp_path, small_domains(width=8)["b"] if name == "b" else domain)
    with pytest.raises(HyCalError, match=r"different widths: a of 24, b of 8, c of 24"):
        load_domains(small_setting(), tmp_path)


SETTING = """
title = "one set"
protocol = "CIL"
source = "embeddings"
seeds = [0]
short = "with-replacement"
sampling = "released"
[[domains]]
name = "artbench"
classes = 3
shots = 1
draws = "numpy"
"""


class Reader(TinyEncoder):
    """The tiny encoder with a text tower."""

    has_text = True

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        self.texts = list(texts)
        return unit_rows(np.random.default_rng(len(texts)).normal(size=(len(texts), self.dimension)))


def test_a_data_set_becomes_a_domain_with_text(tmp_path: Path) -> None:
    datasets.artbench(tmp_path)
    encoder = Reader()
    domain, skipped = embed_domain("artbench", tmp_path, encoder)
    assert not skipped
    assert len(domain.class_names) == len(domain.labels) == 3
    assert domain.text is not None
    assert domain.text.shape == (3, 12)
    assert "a photo of a painting in the ukiyo-e style." in encoder.texts
    assert set(domain.train_y) == set(range(3))
    assert [decode(base64.b64decode(example)).size for example in domain.examples] == [picture(0).size] * 3
    write_domain(tmp_path, domain)
    assert read_domain(tmp_path, "artbench").examples == domain.examples


@pytest.mark.parametrize("name", [spec.name for spec in list_datasets() if spec.split_file])
def test_a_data_set_is_not_embedded_under_another_split(name: str, tmp_path: Path) -> None:
    getattr(datasets, name)(tmp_path)
    encoder = TinyEncoder()
    with pytest.raises(HyCalError, match=rf"no split_zhou_\w+\.json below .*`hycal data fetch {name} "):
        embed_domain(name, tmp_path, encoder)
    assert not encoder.calls


def test_organs_of_28_pixels_are_not_embedded(tmp_path: Path) -> None:
    datasets.organ(tmp_path, "organamnist")
    with pytest.raises(HyCalError, match=r"no organamnist_224 below .*`hycal data fetch organ "):
        embed_domain("organ", tmp_path, TinyEncoder())
    datasets.organ(tmp_path)
    domain, _ = embed_domain("organ", tmp_path, TinyEncoder())
    assert len(domain.train_y) == 22


def test_a_domain_without_images_is_not_written(tmp_path: Path) -> None:
    domain = small_domains()["a"]
    empty = replace(domain, train_x=domain.train_x[:0], train_y=domain.train_y[:0])
    for faulty in (empty, replace(domain, train_y=domain.train_y % 3)):
        with pytest.raises(HyCalError, match=r"train_x is of shape \(0, 24\)|no image of class 'class 3'"):
            write_domain(tmp_path, faulty)
    assert not list(tmp_path.iterdir())


def test_embed_without_a_split_ends_with_an_error_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name: TinyEncoder())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    datasets.artbench(tmp_path / "data" / "artbench")
    datasets.eurosat(tmp_path / "data" / "eurosat")
    setting = tmp_path / "two.toml"
    second = SETTING[SETTING.index("[[") :].replace("artbench", "eurosat").replace("classes = 3", "classes = 2")
    setting.write_text(SETTING + second, encoding="utf-8")
    options = ["--root", str(tmp_path / "data"), "--out", str(tmp_path / "embeddings")]
    ended = CliRunner().invoke(app, ["embed", str(setting), *options])
    assert ended.exit_code == 1 and "split_zhou_EuroSAT.json" in ended.output
    assert not (tmp_path / "embeddings").exists(), "it is said before the first set is embedded"


def test_embeddings_of_another_encoder_are_neither_kept_nor_mixed(tmp_path: Path) -> None:
    datasets.artbench(tmp_path / "data")
    domain, _ = embed_domain("artbench", tmp_path / "data", TinyEncoder())
    none = tmp_path / "no copies"
    assert not is_embedded("artbench", tmp_path, TinyEncoder(), none)
    write_domain(tmp_path, domain)
    assert is_embedded("artbench", tmp_path, TinyEncoder(), none)
    with pytest.raises(HyCalError, match=r"artbench\.npz holds embeddings of tiny-0-12/.* expected tiny-1"):
        is_embedded("artbench", tmp_path, TinyEncoder(seed=1), none)
    two = read_setting("two", SETTING + SETTING[SETTING.index("[[") :].replace("artbench", "other"))
    write_domain(tmp_path, replace(domain, name="other", space="tiny-1"))
    with pytest.raises(HyCalError, match=r"different spaces: artbench of tiny-0-12/.*, other of tiny-1"):
        load_domains(two, tmp_path)
    write_domain(tmp_path, replace(domain, name="other", space=""))
    assert list(load_domains(two, tmp_path)) == ["artbench", "other"]
    with pytest.raises(HyCalError, match="an unknown encoder"):
        is_embedded("other", tmp_path, TinyEncoder(), none)


def test_embeddings_of_images_that_changed_are_not_kept(tmp_path: Path) -> None:
    copy = tmp_path / "data" / "artbench"
    datasets.artbench(copy)
    domain, _ = embed_domain("artbench", copy, TinyEncoder())
    write_domain(tmp_path, domain)
    moved = tmp_path / "moved" / "artbench"
    datasets.artbench(moved)
    for root in (copy.parent, moved.parent):
        assert is_embedded("artbench", tmp_path, TinyEncoder(), root)
    train = moved / "artbench-10-imagefolder-split" / "train"
    one = train / "ukiyo_e" / "someone_a-picture-train-ukiyo_e.jpg"
    for new in (
        one.with_name("renamed.jpg"),
        train / "art_nouveau" / one.name,
        train.parent / "test" / "ukiyo_e" / one.name,
    ):
        shutil.copy(one, new)
        with pytest.raises(HyCalError, match=r"artbench\.npz holds embeddings of other images, classes or splits"):
            is_embedded("artbench", tmp_path, TinyEncoder(), moved.parent)
        new.unlink()
    assert is_embedded("artbench", tmp_path, TinyEncoder(), moved.parent)
    write_domain(tmp_path, replace(domain, images=""))
    with pytest.raises(HyCalError, match="images that it does not list"):
        is_embedded("artbench", tmp_path, TinyEncoder(), moved.parent)


def test_embed_then_run_then_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name: Reader())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    datasets.artbench(tmp_path / "data" / "artbench")
    setting, embeddings, out = tmp_path / "one.toml", tmp_path / "embeddings", tmp_path / "out"
    setting.write_text(SETTING, encoding="utf-8")
    runner = CliRunner()
    made = runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert made.exit_code == 0, made.output
    assert read_domain(embeddings, "artbench").text is not None
    before = (embeddings / "artbench.npz").stat().st_mtime_ns
    runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert (embeddings / "artbench.npz").stat().st_mtime_ns == before
    new = tmp_path / "data" / "artbench" / "artbench-10-imagefolder-split" / "train" / "ukiyo_e" / "new.jpg"
    datasets.image(new)
    changed = runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert changed.exit_code == 1 and "Delete the file to embed" in " ".join(changed.output.split())
    new.unlink()
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name: Reader(seed=1))
    other = runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert other.exit_code == 1 and "Use another folder" in other.output
    options = ["--methods", "HyCal ZeroShot", "--embeddings", str(embeddings), "--jobs", "1", "--out", str(out)]
    ran = runner.invoke(app, ["run", str(setting), *options])
    assert ran.exit_code == 0, ran.output
    assert "2 runs" in ran.output
    assert (out / "samples" / "one+released.default.0.csv").exists()
