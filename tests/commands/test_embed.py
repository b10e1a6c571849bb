import csv
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from hycal.commands import embed as embedding_command
from hycal.embedding import read_table
from hycal.embedding.shards import encoder_of_worker
from tests.support.commands import run_hycal
from tests.support.encoders import TinyEncoder
from tests.support.images import make_folder, make_mixed_folder


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put the tiny encoder in the place of every named one, and the cache in the test's folder."""
    monkeypatch.setattr("hycal.commands.embed.load_encoder", lambda name, **options: TinyEncoder())
    monkeypatch.setattr("hycal.embedding.shards.load_encoder", lambda name, **options: TinyEncoder())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))


def run(*arguments: object) -> Result:
    return run_hycal("embed", *arguments)


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
    assert "no image was encoded" in again.output and (tmp_path / "zoo.npz").read_bytes() == before


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


def test_a_cluster_writes_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    make_mixed_folder(tmp_path / "mixed")
    written = []
    for name, more in {"alone": [], "cluster": ["--cluster", "local:1"]}.items():
        arguments = ["--out", tmp_path / f"{name}.npz", "--cache", tmp_path / name, *more]
        assert run(tmp_path / "mixed", *arguments).exit_code == 0
        written.append([(tmp_path / f"{name}{end}").read_bytes() for end in (".npz", ".npz.skipped.csv")])
    encoder_of_worker.cache_clear()
    assert written[0] == written[1]
    wrong = run(tmp_path / "mixed", "--out", tmp_path / "x.npz", "--cluster", "slurm:4")
    assert wrong.exit_code == 1 and "names no cluster" in wrong.output


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


def test_names_that_are_not_text_stop_nothing_and_command_no_terminal(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "zoo")
    for name in (b"lat\xe9n", b"\x1b[31m\nred", b"[bold]x"):
        for suffix, content in ((b".png", (folder / "class_0" / "000.png").read_bytes()), (b".txt", b"no image")):
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name + suffix)).write_bytes(content)
    result = run(folder, "--out", tmp_path / "zoo.npz")
    assert result.exit_code == 0 and "\x1b" not in result.output
    assert all(f"skipped: {folder}/{name}.txt: not an" in result.output for name in (r"lat\udce9n", "[bold]x"))
    with (tmp_path / "zoo.npz.skipped.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3
    assert len(read_table(tmp_path / "zoo.npz").files) == 13


def test_the_report_has_no_formula_and_no_direction_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_folder(tmp_path / "zoo"))
    Path("=1+1\u202egpj.txt").write_text("no image")
    run(".", "--out", tmp_path / "zoo.npz")
    assert "\n'=1+1\\u202egpj.txt,not an image" in (tmp_path / "zoo.npz.skipped.csv").read_text()


def test_a_file_of_another_kind_is_never_replaced(tmp_path: Path) -> None:
    images = tmp_path / "images.npz"
    np.savez(images, images=np.zeros((2, 8, 8), np.uint8), labels=np.array(["a", "b"]))
    before = images.read_bytes()
    result = run(images, "--out", images)
    assert result.exit_code == 1 and "not replaced" in result.output and images.read_bytes() == before
    (tmp_path / "folder.npz").mkdir()
    assert "not replaced" in run(images, "--out", tmp_path / "folder.npz").output
    own = tmp_path / "x.npz.skipped.csv"
    own.write_text("my,own,list")
    assert "not replaced" in run(images, "--out", tmp_path / "x.npz").output
    assert own.read_text() == "my,own,list"
    assert run(images, "--out", images, "--force").exit_code == 0 and len(read_table(images).rows) == 2


def test_results_inside_the_folder_are_not_its_images(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "zoo")
    (folder / "notes.txt").write_text("no image")
    for _ in range(2):
        result = run(folder, "--out", folder / "zoo.npz")
        assert result.exit_code == 0 and "11 files" in result.output and "1 skipped" in result.output


def test_a_manifest_names_its_files_as_it_does(tmp_path: Path) -> None:
    make_folder(tmp_path / "zoo")
    (tmp_path / "list.CSV").write_text("file,label\nzoo/class_0/000.png,a\n")
    assert run(tmp_path / "list.CSV", "--out", tmp_path / "x.npz").exit_code == 0
    assert read_table(tmp_path / "x.npz").files.tolist() == ["zoo/class_0/000.png"]


def test_a_manifest_outside_its_folder_needs_a_word(tmp_path: Path) -> None:
    make_folder(tmp_path / "zoo")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "m.csv").write_text("file,label\n../zoo/class_0/000.png,a\n")
    asked = (tmp_path / "lists" / "m.csv", "--out", tmp_path / "x.npz")
    assert "--outside allows" in run(*asked).output and not (tmp_path / "x.npz").exists()
    assert run(*asked, "--outside").exit_code == 0


def test_a_refused_folder_and_a_refused_cache_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    folder = make_folder(tmp_path / "zoo")
    (tmp_path / "file").write_text("x")
    result = run(folder, "--out", tmp_path / "x.npz", "--cache", tmp_path / "file")
    assert result.exit_code == 1 and "Choose another folder" in result.output
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", refuse)
        result = run(folder, "--out", tmp_path / "x.npz")
        assert result.exit_code == 1 and "Permission denied. Choose a folder" in result.output
    monkeypatch.setattr(embedding_command, "write_table", refuse)
    result = run(folder, "--out", tmp_path / "x.npz")
    assert result.exit_code == 1 and "The system refused" in result.output


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedding_command, "embed", interrupted)
    result = run(make_folder(tmp_path / "zoo"), "--out", tmp_path / "x.npz")
    assert result.exit_code == 130 and "Run the same command again to go on" in result.output
