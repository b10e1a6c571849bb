from pathlib import Path

import numpy as np
import pytest

from hycal.data import read_csv, read_folder, read_jsonl, read_npz
from hycal.data.readers import list_images
from hycal.errors import HyCalError
from tests.support.datasets import image, text


def test_class_folders_are_one_domain_called_as_the_folder(tmp_path: Path) -> None:
    for label in ("cat", "ant"):
        image(tmp_path / "zoo" / label / "1.jpg")
    sets = read_folder(tmp_path / "zoo")
    assert list(sets) == ["zoo"] and sets["zoo"].class_names == ("ant", "cat")
    assert [(s.label, s.split) for s in sets["zoo"].samples] == [(0, ""), (1, "")]


def test_splits_and_domains(tmp_path: Path) -> None:
    image(tmp_path / "digit" / "train" / "7" / "a.jpg")
    image(tmp_path / "digit" / "test" / "8" / "b.jpg")
    image(tmp_path / "digit" / "test" / "8" / "more" / "b.jpg")
    image(tmp_path / "flower" / "Validation" / "rose" / "c.jpg")
    sets = read_folder(tmp_path)
    assert sets["digit"].counts() == {"train": 1, "test": 2} and sets["digit"].class_names == ("7", "8")
    assert sets["flower"].counts() == {"val": 1}
    one = read_folder(tmp_path / "digit")
    assert list(one) == ["digit"] and one["digit"].counts() == {"train": 1, "test": 2}


@pytest.mark.parametrize(
    ("layout", "place"),
    [
        ("{name}", "zoo/cat"),
        ("{split}/{name}", "zoo/cat"),
        ("{name}/{split}", "zoo/cat"),
        ("pets/{name}", "pets/cat"),
        ("{split}/pets/{name}", "pets/cat"),
        ("pets/{split}/{name}", "pets/cat"),
        ("pets/{name}/{split}", "pets/cat"),
        ("{split}/pets/{name}/more", "pets/cat"),
    ],
)
def test_every_order_of_domain_split_and_class_is_understood(tmp_path: Path, layout: str, place: str) -> None:
    for split in ("train", "Testing"):
        for name in ("cat", "dog"):
            image(tmp_path / "zoo" / layout.format(split=split, name=name) / f"{split}.jpg")
    listed = list_images(tmp_path / "zoo")
    assert {f"{one.domain}/{one.label}" for one in listed} == {place, place.replace("cat", "dog")}
    splits = {(Path(one.file).stem, one.split) for one in listed}
    told = {("train", "train"), ("Testing", "test")} if "{split}" in layout else {("train", ""), ("Testing", "")}
    assert splits == told


def test_a_folder_with_most_files_in_it_is_a_class_and_a_stray_file_makes_none(tmp_path: Path) -> None:
    for file in ("cat/1.jpg", "cat/2.jpg", "cat/old/3.jpg", "pets/cover.jpg", "pets/dog/1.jpg", "pets/cow/1.jpg"):
        image(tmp_path / file)
    listed = {one.file: f"{one.domain}/{one.label}" for one in list_images(tmp_path)}
    assert listed["cat/old/3.jpg"] == listed["cat/1.jpg"] == f"{tmp_path.name}/cat"
    assert listed["pets/dog/1.jpg"] == "pets/dog" and listed["pets/cow/1.jpg"] == "pets/cow"


def test_links_to_folders_are_followed_without_a_loop(tmp_path: Path) -> None:
    image(tmp_path / "set" / "cat" / "1.jpg")
    image(tmp_path / "else" / "dog" / "1.jpg")
    (tmp_path / "set" / "dog").symlink_to(tmp_path / "else" / "dog")
    (tmp_path / "set" / "twin").symlink_to(tmp_path / "else" / "dog")
    (tmp_path / "set" / "cat" / "again").symlink_to(tmp_path / "set")
    (tmp_path / "else" / "dog" / "back").symlink_to(tmp_path)
    listed = [one.file for one in list_images(tmp_path / "set")]
    assert listed == ["cat/1.jpg", "cat/again", "dog/1.jpg", "dog/back", "twin"]


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    image(tmp_path / "x" / "test" / "1.jpg")
    assert read_folder(tmp_path / "x")["x"].class_names == ("test",)


def test_folders_without_classes_or_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="no files"):
        read_folder(tmp_path)
    image(tmp_path / "1.jpg")
    with pytest.raises(HyCalError, match="no class folders"):
        read_folder(tmp_path)


def test_csv_and_jsonl_say_the_same(tmp_path: Path) -> None:
    text(tmp_path / "m.csv", ["file,label,split,domain", "a.jpg,cat,train,zoo", '"b, c.jpg",ant,test,', ""])
    lines = ['{"file": "a.jpg", "label": "cat", "split": "train", "domain": "zoo"}', ""]
    lines.append('{"file": "b, c.jpg", "label": "ant", "split": "test"}')
    text(tmp_path / "m.jsonl", lines)
    for sets in (read_csv(tmp_path / "m.csv"), read_jsonl(tmp_path / "m.jsonl")):
        assert list(sets) == ["m", "zoo"] and sets["zoo"].counts() == {"train": 1}
        assert sets["m"].samples[0].source.name == str(tmp_path / "b, c.jpg")


@pytest.mark.parametrize("file", ["../secret.jpg", "{}/secret.jpg", "in/../../secret.jpg", "link/secret.jpg"])
def test_a_manifest_names_images_of_its_own_folder(tmp_path: Path, file: str) -> None:
    (tmp_path / "set" / "in").mkdir(parents=True)
    (tmp_path / "set" / "link").symlink_to(tmp_path)
    text(tmp_path / "set" / "m.csv", ["file,label", "in/../a.jpg,cat", f"{file.format(tmp_path)},cat"])
    with pytest.raises(HyCalError, match=r"line 3: .* outside of the folder"):
        list_images(tmp_path / "set" / "m.csv")
    assert len(list_images(tmp_path / "set" / "m.csv", outside=True)) == 2


@pytest.mark.parametrize("name", ["a\\u0000/b.jpg", "\\ud800/b.jpg"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    text(tmp_path / "m.jsonl", [f'{{"file": "{name}", "label": "cat"}}'])
    with pytest.raises(HyCalError, match="line 1: no file can be called"):
        list_images(tmp_path / "m.jsonl")


def test_class_names_have_one_form(tmp_path: Path) -> None:
    for name in ("cafe\u0301", "caf\xe9"):
        image(tmp_path / "zoo" / name / "1.jpg")
    text(tmp_path / "m.csv", ["file,label", "a.jpg,cafe\u0301", "b.jpg,caf\xe9"])
    for sets in (read_folder(tmp_path / "zoo")["zoo"], read_csv(tmp_path / "m.csv")["m"]):
        assert sets.class_names == ("caf\xe9",) and len(sets.samples) == 2


def test_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    path = text(tmp_path / "m.csv", ["file,label", "a.jpg,cat", "b.jpg,"])
    (sets,) = read_csv(path).values()
    assert [sample.source.name for sample in sets.samples] == [str(tmp_path / "a.jpg")]


@pytest.mark.parametrize(
    ("name", "lines", "says"),
    [
        ("m.csv", ["path,class", "a.jpg,cat"], "expected a header"),
        ("m.csv", ["file,label"], "lists no images"),
        ("m.csv", ["file,label", "a.jpg,"], "lists no images with a label"),
        ("m.csv", ["file,label", ",cat"], "line 2: the file"),
        ("m.csv", ["file,label,split", "a.jpg,cat,dev"], "'dev'"),
        ("m.jsonl", ['{"file": "a.jpg", "label": "cat"}', "{"], "line 2 is not JSON"),
        ("m.jsonl", ["[1]"], "expected an object"),
        ("m.jsonl", ['{"file": "a.jpg", "label": [1]}'], "expected text"),
    ],
)
def test_wrong_manifests_name_the_line(tmp_path: Path, name: str, lines: list[str], says: str) -> None:
    path = text(tmp_path / name, lines)
    with pytest.raises(HyCalError, match=says):
        (read_csv if name.endswith("csv") else read_jsonl)(path)


def test_missing_manifests_are_errors(tmp_path: Path) -> None:
    for read in (read_csv, read_jsonl, read_npz):
        with pytest.raises(HyCalError):
            read(tmp_path / "nowhere")


def test_npz_of_images(tmp_path: Path) -> None:
    pixels = np.zeros((3, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=pixels, labels=np.array(["cat", "ant", "cat"]))
    images = read_npz(tmp_path / "a.npz")
    assert images.class_names == ("ant", "cat") and [s.label for s in images.samples] == [1, 0, 1]
    np.savez(
        tmp_path / "b.npz",
        train_images=pixels,
        train_labels=np.array([[0], [1], [1]]),
        test_images=pixels[:1],
        test_labels=np.array([1]),
        class_names=np.array(["ant", "cat"]),
    )
    images = read_npz(tmp_path / "b.npz")
    assert images.counts() == {"train": 3, "test": 1} and images.class_names == ("ant", "cat")


def test_wrong_npz_files_are_errors(tmp_path: Path) -> None:
    pixels = np.zeros((2, 8, 8), dtype=np.uint8)
    wrong = {
        "expected images and labels": {"x": pixels},
        "2 images but 1": {"images": pixels, "labels": np.array([1])},
        "none of its 1": {"images": pixels, "labels": np.array([0, 1]), "class_names": np.array(["a"])},
        "fractional": {"images": pixels, "labels": np.array([0.5, 1])},
        "one kind in both": {
            "train_images": pixels,
            "train_labels": np.array([0, 1]),
            "test_images": pixels,
            "test_labels": np.array(["a", "b"]),
        },
        "plain arrays": {"images": np.array([{}, {}], dtype=object), "labels": np.array([0, 1])},
    }
    for says, arrays in wrong.items():
        np.savez(tmp_path / "x.npz", **arrays)
        with pytest.raises(HyCalError, match=says):
            read_npz(tmp_path / "x.npz")


def test_listing_takes_everything(tmp_path: Path) -> None:
    image(tmp_path / "digit" / "train" / "7" / "a.jpg")
    image(tmp_path / "loose.jpg")
    text(tmp_path / "m.csv", ["file,label", "loose.jpg,cat"])
    listed = list_images(tmp_path)
    assert [(i.file, i.label, i.domain, i.split) for i in listed] == [
        ("digit/train/7/a.jpg", "7", "digit", "train"),
        ("loose.jpg", "", tmp_path.name, ""),
        ("m.csv", "", tmp_path.name, ""),
    ]
    assert [(i.label, i.domain) for i in list_images(tmp_path / "m.csv")] == [("cat", "m")]
    with pytest.raises(HyCalError, match="expected a folder"):
        list_images(tmp_path / "loose.jpg")
