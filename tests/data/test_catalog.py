from pathlib import Path

import pytest

from hycal.data import catalog, check_dataset, list_datasets, prompts, read_dataset
from hycal.data.catalog import find_dataset
from tests.support.contributing import table_entry
from tests.support.datasets import image


def test_a_data_set_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog._table()
    monkeypatch.setattr(catalog, "_table", lambda: table | table_entry("Add a data set"))
    spec = list_datasets()[-1]
    for number in range(4):
        image(tmp_path / spec.folder / f"bird_{number % spec.classes}" / f"{number}.jpg", number)
    images = read_dataset(spec.name, tmp_path)
    assert images.class_names == ("bird_0", "bird_1") and images.counts() == {"": 4}
    assert check_dataset(spec.name, tmp_path).complete
    assert prompts(find_dataset(spec.name), images.class_names)[0] == "a photo of a bird 0, a bird."


def test_the_documentation_names_every_alias() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
    assert all(f"`{alias}`" in text for spec in list_datasets() for alias in spec.aliases)
