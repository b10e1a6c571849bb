from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hycal.encoders
from hycal import HyCalError
from hycal.bench.domains import load_domains, read_domain, write_domain
from hycal.bench.embedding import embed_domain, is_embedded
from hycal.bench.settings import read_setting
from hycal.commands.bench import app
from hycal.validation import Floats, unit_rows
from tests.data import building
from tests.embedding.tiny import TinyEncoder

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
    building.artbench(tmp_path)
    encoder = Reader()
    domain, skipped = embed_domain("artbench", tmp_path, encoder)
    assert not skipped
    assert len(domain.class_names) == len(domain.labels) == 3
    assert domain.text is not None
    assert domain.text.shape == (3, 12)
    assert "a photo of a painting in the ukiyo-e style." in encoder.texts
    assert set(domain.train_y) == set(range(3))


def test_embeddings_of_another_encoder_are_neither_kept_nor_mixed(tmp_path: Path) -> None:
    building.artbench(tmp_path / "data")
    domain, _ = embed_domain("artbench", tmp_path / "data", TinyEncoder())
    assert not is_embedded("artbench", tmp_path, TinyEncoder())
    write_domain(tmp_path, domain)
    assert is_embedded("artbench", tmp_path, TinyEncoder())
    with pytest.raises(HyCalError, match=r"artbench\.npz holds embeddings of tiny-0-12/.* expected tiny-1"):
        is_embedded("artbench", tmp_path, TinyEncoder(seed=1))
    two = read_setting("two", SETTING + SETTING[SETTING.index("[[") :].replace("artbench", "other"))
    write_domain(tmp_path, replace(domain, name="other", space="tiny-1"))
    with pytest.raises(HyCalError, match=r"different spaces: artbench\.npz of tiny-0-12/.*, other\.npz of tiny-1"):
        load_domains(two, tmp_path)
    write_domain(tmp_path, replace(domain, name="other", space=""))
    assert list(load_domains(two, tmp_path)) == ["artbench", "other"]
    with pytest.raises(HyCalError, match="an unknown encoder"):
        is_embedded("other", tmp_path, TinyEncoder())


def test_embed_then_run_then_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name: Reader())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    building.artbench(tmp_path / "data" / "artbench")
    setting, embeddings, out = tmp_path / "one.toml", tmp_path / "embeddings", tmp_path / "out"
    setting.write_text(SETTING, encoding="utf-8")
    runner = CliRunner()
    made = runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert made.exit_code == 0, made.output
    assert read_domain(embeddings, "artbench").text is not None
    before = (embeddings / "artbench.npz").stat().st_mtime_ns
    runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert (embeddings / "artbench.npz").stat().st_mtime_ns == before
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name: Reader(seed=1))
    other = runner.invoke(app, ["embed", str(setting), "--root", str(tmp_path / "data"), "--out", str(embeddings)])
    assert other.exit_code == 1 and "Use another folder" in other.output
    options = ["--methods", "HyCal ZeroShot", "--embeddings", str(embeddings), "--jobs", "1", "--out", str(out)]
    ran = runner.invoke(app, ["run", str(setting), *options])
    assert ran.exit_code == 0, ran.output
    assert "2 runs" in ran.output
    assert (out / "samples" / "one+released.default.0.csv").exists()
