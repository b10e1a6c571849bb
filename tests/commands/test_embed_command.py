import csv
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import hycal.encoders
from hycal.commands.embed import embed_command
from hycal.embedding import read_table
from tests.embedding.test_pipeline import make_mixed_folder
from tests.embedding.tiny import TinyEncoder, make_folder

app = typer.Typer()
app.command("embed")(embed_command)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put the tiny encoder in the place of every named one, and the cache in the test's folder."""
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name, *, weights=None: TinyEncoder())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_folder_becomes_a_table(tmp_path: Path) -> None:
    make_folder(tmp_path / "zoo" / "train")
    result = run(tmp_path / "zoo", "--out", tmp_path / "zoo.npz")
    assert result.exit_code == 0 and "10 embeddings of 12 numbers" in result.output
    table = read_table(tmp_path / "zoo.npz")
    assert table.files[0] == "train/class_0/000.png" and set(table.labels) == {"class_0", "class_1"}
    assert set(table.domains) == {"zoo"} and set(table.splits) == {"train"} and table.encoder == "tiny-0"
    assert not (tmp_path / "zoo.npz.skipped.csv").exists()
    before = (tmp_path / "zoo.npz").read_bytes()
    again = run(tmp_path / "zoo", "--out", tmp_path / "zoo.npz")
    assert "0 images encoded" in again.output and (tmp_path / "zoo.npz").read_bytes() == before


def test_skipped_files_are_shown_and_written(tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    good, bad = make_mixed_folder(tmp_path / "mixed")
    result = run(tmp_path / "mixed", "--out", tmp_path / "mixed.npz")
    assert result.exit_code == 0 and "empty file (0 bytes)" in result.output
    assert set(read_table(tmp_path / "mixed.npz").files) == good
    with (tmp_path / "mixed.npz.skipped.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {Path(row["file"]).name for row in rows} == bad and all(row["reason"] for row in rows)
    assert run(tmp_path / "mixed", "--out", tmp_path / "mixed.npz", "--strict").exit_code == 3


def test_what_newcomers_try(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("hello")
    out = tmp_path / "x.npz"
    for arguments, says in (
        ((tmp_path / "nowhere", "--out", out), "does not exist"),
        ((tmp_path / "empty", "--out", out), "no files"),
        ((tmp_path / "text", "--out", out), "None of the 1 files"),
        ((tmp_path / "text" / "a.txt", "--out", out), "expected a folder"),
        ((tmp_path / "text", "--out", tmp_path / "x.csv"), "ends in .npz"),
        ((tmp_path / "text", "--out", tmp_path / "no" / "x.npz"), "Make it first"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1 and says in result.output.replace("\n", " "), arguments
        assert "Traceback" not in result.output
    assert not out.exists()
    assert run(tmp_path / "text").exit_code == 2
    assert "Example" in run("--help").output
