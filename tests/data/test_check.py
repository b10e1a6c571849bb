from pathlib import Path

from hycal.data import check_dataset
from tests.support import datasets


def test_a_part_of_a_set_says_what_is_there_missing_and_wrong(tmp_path: Path) -> None:
    datasets.aircraft(tmp_path)
    images = tmp_path / "fgvc-aircraft-2013b" / "data" / "images"
    (images / "0000001.jpg").unlink()
    (images / "0000002.jpg").write_bytes(b"")
    (images / "0000003.jpg").write_bytes(b"broken")
    report = check_dataset("aircraft", tmp_path)
    assert not report.complete
    assert report.there[0] == "3 classes, 4 images (2 train, 1 val, 1 test)"
    assert "1 image files that the lists name" in report.missing[0] and "0000001.jpg" in report.missing[0]
    wrong = "\n".join(report.wrong)
    assert "3 classes; the published set has 100" in wrong
    assert "2 images in train; the published set has 3,334" in wrong
    assert "1 empty image files" in wrong and "0000003.jpg (not an image" in wrong


def test_an_empty_folder_and_no_folder(tmp_path: Path) -> None:
    assert "variants.txt" in check_dataset("aircraft", tmp_path).missing[0]
    assert "does not exist" in check_dataset("dtd", tmp_path / "no").missing[0]


def test_the_split_is_named(tmp_path: Path) -> None:
    datasets.dtd(tmp_path)
    missing = check_dataset("dtd", tmp_path).missing
    assert len(missing) == 1 and "there is no split_zhou_DescribableTextures.json" in missing[0]
    entry: list[list[object]] = [["dotted/dotted_0002.jpg", 0, "dotted"]]
    path = tmp_path / "dtd" / "split_zhou_DescribableTextures.json"
    datasets.coop_split(path, {"train": entry, "val": entry, "test": entry})
    report = check_dataset("dtd", tmp_path)
    assert "CoOp's" in report.there[1] and not report.missing
    assert "1 images in val; the published set has 1,128" in report.wrong
