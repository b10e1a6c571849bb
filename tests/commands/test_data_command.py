from pathlib import Path

from typer.testing import CliRunner

from hycal.commands.data import app
from tests.support import datasets

run = CliRunner().invoke


def test_list_shows_every_set() -> None:
    result = run(app, ["list"], terminal_width=200)
    assert result.exit_code == 0 and "FGVC-Aircraft" in result.output and "sun397" in result.output


def test_check_of_a_part(tmp_path: Path) -> None:
    datasets.eurosat(tmp_path)
    result = run(app, ["check", "eurosat", "--root", str(tmp_path)])
    assert result.exit_code == 1
    assert "there: 2 classes, 4 images" in result.output and "wrong: 4 images in all" in result.output


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    result = run(app, ["check", "imagenet", "--root", str(tmp_path)])
    assert result.exit_code == 1 and "expected one of aircraft, artbench" in result.output
    result = run(app, ["fetch", "cars", "--root", str(tmp_path)])
    assert result.exit_code == 1 and "by hand" in result.output and "Traceback" not in result.output
