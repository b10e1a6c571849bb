"""`hycal data`: the data sets of the benchmark are listed and checked."""

from pathlib import Path

from tests.support import datasets
from tests.support.commands import run_hycal


def test_list_shows_every_set() -> None:
    result = run_hycal("data", "list")
    assert result.exit_code == 0 and "FGVC-Aircraft" in result.output and "sun397" in result.output


def test_check_of_a_part(tmp_path: Path) -> None:
    datasets.eurosat(tmp_path)
    result = run_hycal("data", "check", "eurosat", "--root", tmp_path)
    assert result.exit_code == 1
    assert "there: 2 classes, 4 images" in result.output and "wrong: 4 images in all" in result.output


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    result = run_hycal("data", "check", "imagenet", "--root", tmp_path)
    assert result.exit_code == 1 and "expected one of aircraft, artbench" in result.output


def test_a_set_without_its_split_is_not_complete(tmp_path: Path) -> None:
    datasets.cars(tmp_path)
    result = run_hycal("data", "check", "cars", "--root", tmp_path)
    assert result.exit_code == 1
    assert "there is no split_zhou_StanfordCars.json" in result.output.replace("\n", " ")
    assert "https://drive.google.com/uc?export=download&id=" in result.output
