"""Labels in the formats of other programs: written and read again, read as others write them, and hostile ones."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hycal.data.annotations import MARKS, MODEL, ImageLabel, image_label, read_labels, write_labels
from hycal.data.annotations.image_label import parse_xml
from hycal.data.annotations.label_studio import labeling_interface
from hycal.data.readers import list_images
from hycal.errors import HyCalError
from tests.support.data import ROOT
from tests.support.datasets import image

SUFFIXES = {"label-studio": ".json", "cvat": ".xml", "coco": ".json", "csv": ".csv"}
FILES = ["a.jpg", "deep/b c.jpg", "é 猫.png", "x,y;z.jpg", "\"q\" 'r'.jpg", "=cmd.jpg", "-x.jpg", "a+b%20&?d=#1.jpg"]
NAMES = [
    "rose",
    "猫 é",
    "a,b;c\td".replace("\t", " "),
    "\"quoted\" 'twice'",
    "=cmd|' /C calc'!A0",
    "-x",
    "'=y",
    "<b>&amp;",
]
LABELS = [
    *(ImageLabel(file, name, "flower") for file, name in zip(FILES, NAMES, strict=True)),
    ImageLabel("slash.jpg", "a/b/c", "=domain"),
    ImageLabel("alone.jpg", "rose"),
    ImageLabel("guess.jpg", "rose", "flower", confidence=0.8125, by=MODEL),
    ImageLabel("none.jpg"),
]


def write(path: Path, labels: list[ImageLabel], form: str) -> Path:
    path.write_bytes(write_labels(labels, form, lambda file: (4, 3) if file == "a.jpg" else None))
    return path


@pytest.mark.parametrize("form", MARKS)
def test_what_is_written_is_read_again(tmp_path, form):
    path = write(tmp_path / f"labels{SUFFIXES[form]}", LABELS, form)
    assert read_labels(path) == LABELS
    assert MARKS[form] in path.read_bytes()[:100]


def test_labels_pass_from_any_format_to_any_other(tmp_path):
    for first, second in permutations(MARKS, 2):
        once = read_labels(write(tmp_path / f"1{SUFFIXES[first]}", LABELS, first))
        assert read_labels(write(tmp_path / f"2{SUFFIXES[second]}", once, second)) == LABELS, (first, second)


@pytest.mark.parametrize(
    ("form", "kept"), [("label-studio", ["split", "when", "sha256"]), ("cvat", ["split"]), ("coco", [])]
)
def test_what_each_format_carries_beside_the_label(tmp_path, form, kept):
    whole = ImageLabel("a.jpg", "rose", "flower", "train", by="user 7", when="2026-01-02T03:04:05Z", sha256="ab" * 32)
    (found,) = read_labels(write(tmp_path / f"labels{SUFFIXES[form]}", [whole], form))
    assert [name for name in ("split", "when", "sha256", "by") if getattr(found, name)] == kept
    assert read_labels(write(tmp_path / "labels.csv", [whole], "csv")) == [whole]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_may_be_separated_by_commas_semicolons_or_tabs(tmp_path, delimiter):
    (tmp_path / "m.csv").write_text(
        delimiter.join(["Path", "Label"]) + "\n" + delimiter.join(["a.jpg", '"x;y"']) + "\n"
    )
    assert [(item.file, item.label) for item in read_labels(tmp_path / "m.csv")] == [("a.jpg", "x;y")]


def task(results: list[dict], *, reference: str = "/data/local-files/?d=birds/1.jpg", **more) -> dict:
    return {"id": 3, "data": {"image": reference}, "annotations": [{"result": results, **more}]}


def choice(*names: str) -> dict:
    return {"from_name": "kind", "to_name": "img", "type": "choices", "value": {"choices": list(names)}}


def tasks_file(tmp_path: Path, *tasks: dict) -> Path:
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    return tmp_path / "tasks.json"


def test_an_export_of_label_studio(tmp_path):
    box = {"type": "rectanglelabels", "value": {"x": 1, "rectanglelabels": ["heron"]}}
    deep = {"type": "taxonomy", "value": {"taxonomy": [["bird", "heron"]]}}
    first, second, third, skipped = read_labels(
        tasks_file(
            tmp_path,
            task([choice("heron")], completed_by=7, updated_at="2026-01-01"),
            task([box, box], reference="birds/1.jpg"),
            task([deep]),
            task([choice("heron")], was_cancelled=True),
        )
    )
    assert (first.file, first.label, first.by, first.when) == ("birds/1.jpg", "heron", "user 7", "2026-01-01")
    assert (second.file, second.label) == ("birds/1.jpg", "heron") and third.name == "bird/heron" and not skipped.label


def test_the_ground_truth_and_then_the_newest_annotation_come_first(tmp_path):
    given = [
        {"result": [choice(name)], "updated_at": f"2026-01-0{day}", "ground_truth": name == "c"}
        for day, name in enumerate("abc", start=1)
    ]
    found = read_labels(tasks_file(tmp_path, {"data": {"photo": "x/1.jpg"}, "annotations": given[::-1]}))
    assert [item.label for item in found] == ["c", "b", "a"]


def test_a_subset_of_cvat_that_is_no_split_does_not_matter(tmp_path):
    images = "".join(
        f"<image id='{n}' name='{n}.jpg' subset='{n}'><tag label='x'/></image>" for n in ("default", "Test")
    )
    (tmp_path / "a.xml").write_text(f"<annotations>{images}</annotations>")
    assert [item.split for item in list_images(tmp_path / "a.xml")] == ["", "test"]


def test_of_labels_that_differ_the_first_is_learned_and_the_others_have_the_reason(tmp_path):
    given = [ImageLabel("1.jpg", "z", "late"), ImageLabel("1.jpg", "a", "early"), ImageLabel("1.jpg", "z", "late")]
    found = list_images(write(tmp_path / "labels.csv", given, "csv"))
    assert [(item.domain, item.label) for item in found] == [("early", ""), ("late", "z"), ("late", "z")]
    assert "has the label late/z too" in found[0].problem


@pytest.mark.parametrize("form", ["label-studio", "coco"])
def test_json_keeps_control_characters(tmp_path, form):
    odd = [ImageLabel("a\x1b\nb\u202e.jpg", "x\ty", "d"), ImageLabel("\udce9.jpg", "z", "d")]
    assert read_labels(write(tmp_path / "labels.json", odd, form)) == odd


def test_an_image_has_one_class(tmp_path):
    both = tasks_file(tmp_path, task([choice("heron", "stork")]))
    (found,) = read_labels(both)
    assert not found.label and "2 labels: heron, stork" in found.problem
    coco = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in (1, 2, 3)],
        "annotations": [
            {"image_id": 1, "category_id": 5, "bbox": [0, 0, 1, 1]},
            {"image_id": 1, "category_id": 5, "bbox": [1, 1, 1, 1]},
            {"image_id": 2, "category_id": 5, "bbox": [0, 0, 1, 1]},
            {"image_id": 2, "category_id": 6, "bbox": [0, 0, 1, 1]},
            {"image_id": 3, "category_id": 6},
        ],
        "categories": [{"id": 5, "name": "dog", "supercategory": "animal"}, {"id": 6, "name": "cat"}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    one, two, three = read_labels(tmp_path / "coco.json")
    assert one.name == "animal/dog" and "2 labels: animal/dog, cat" in two.problem and three.name == "cat"
    (tmp_path / "cvat.xml").write_text(
        "<annotations><version>1.1</version><image id='0' name='1.jpg'><box label='dog'/><tag label='cat'/></image>"
        "<image id='1' name='2.jpg'><box label='dog'/><box label='cat'/></image></annotations>"
    )
    one, two = read_labels(tmp_path / "cvat.xml")
    assert one.label == "cat" and "2 labels: cat, dog" in two.problem


@pytest.mark.parametrize(
    ("reference", "file"),
    [
        ("/data/local-files/?d=birds/a%20b.jpg", "birds/a b.jpg"),
        ("http://localhost:8080/data/local-files/?d=birds/a%20b.jpg", "birds/a b.jpg"),
        ("/data/upload/3/0123abcd-a%20b.jpg", "upload/3/0123abcd-a b.jpg"),
        ("/data/upload/4/0123abcd-kept.jpg", "0123abcd-kept.jpg"),
        ("/data/upload/4/0123abcd-own.jpg", "own.jpg"),
        ("birds/a b.jpg", "birds/a b.jpg"),
    ],
)
def test_references_of_label_studio_are_files_of_the_folder(tmp_path, reference, file):
    for name in ("birds/a b.jpg", "upload/3/0123abcd-a b.jpg", "0123abcd-kept.jpg", "own.jpg"):
        image(tmp_path / "images" / name)
    path = tasks_file(tmp_path, task([choice("heron")], reference=reference))
    (found,) = list_images(path, images=tmp_path / "images")
    assert (found.file, found.label, found.domain) == (file, "heron", "tasks") and Path(found.source.name).is_file()


@pytest.mark.parametrize("reference", ["s3://bucket/1.jpg", "https://example.org/1.jpg", "data:image/png;base64,AA=="])
def test_nothing_is_fetched(tmp_path, reference):
    (found,) = list_images(tasks_file(tmp_path, task([choice("heron")], reference=reference)))
    assert not found.label and "fetches no image" in found.problem


@pytest.mark.parametrize("file", ["../secret.jpg", "/etc/passwd", "in/../../secret.jpg", "link/secret.jpg"])
@pytest.mark.parametrize("form", MARKS)
def test_a_file_of_labels_names_images_of_its_folder(tmp_path, form, file):
    (tmp_path / "set" / "in").mkdir(parents=True)
    (tmp_path / "set" / "link").symlink_to(tmp_path)
    labels = [ImageLabel("a.jpg", "rose", "flower"), ImageLabel(file, "rose", "flower")]
    path = write(tmp_path / "set" / f"labels{SUFFIXES[form]}", labels, form)
    with pytest.raises(HyCalError, match="outside of the folder of the images"):
        list_images(path)
    assert len(list_images(path, outside=True)) == 2


def test_an_upload_cannot_leave_the_folder(tmp_path):
    path = tasks_file(tmp_path, task([choice("x")], reference="/data/upload/../../../etc/passwd"))
    with pytest.raises(HyCalError, match="outside of the folder"):
        list_images(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xml_defines_no_entities(tmp_path, encoding):
    bomb = '<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]><annotations><image id="0" name="&c;"/></annotations>'
    (tmp_path / "a.xml").write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{bomb}'.encode(encoding))
    with pytest.raises(HyCalError, match="DOCTYPE"):
        read_labels(tmp_path / "a.xml")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.xml", "<annotations>", "cannot be read: no element|unclosed"),
        ("a.xml", "<svg/>", "outer element is 'svg'"),
        ("a.xml", "<annotations><track/></annotations>", "tracks of a video"),
        ("a.xml", "<annotations><image id='3'/></annotations>", "image 3 has no name"),
        ("a.json", "{", "not JSON"),
        ("a.json", "[" * 100_000, "not JSON"),
        ("a.json", '{"images": []}', "neither COCO"),
        ("a.json", '[{"image": "1.jpg", "choice": "cat"}]', "JSON-MIN"),
        ("a.json", '[{"data": {"text": "words"}}]', "0 values that could be the image"),
        ("a.json", '[{"data": 3}]', "task 1: TypeError|task 1: AttributeError"),
        ("a.json", '[{"data": {"image": "1.jpg"}, "annotations": [{"result": [{"type": "choices"}]}]}]', "KeyError"),
        ("a.json", '{"images": [{"id": 1}], "annotations": [], "categories": []}', "not a COCO file"),
        (
            "a.json",
            '{"images": [], "annotations": [{"image_id": 1, "category_id": 2}], "categories": []}',
            "KeyError 2",
        ),
        ("a.csv", "file,label,confidence\na.jpg,cat,1.5\n", "line 2: confidence is '1.5'"),
        ("a.jsonl", f'{{"file": "a.jpg", "label": "cat", "confidence": {10**400}}}', "line 1: confidence is 1000"),
        ("a.json", '[{"data": {"image": "1.jpg"}, "predictions": [{"score": NaN}]}]', "not a number"),
        ("a.csv", "file|label\na.jpg|cat\n", "separated by commas, semicolons or tabs"),
    ],
)
def test_files_that_are_something_else_are_refused_with_the_reason(tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(HyCalError, match=says):
        read_labels(tmp_path / name)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(image_label, "MOST_BYTES", 1000)
    for form in MARKS:
        with pytest.raises(HyCalError, match="larger than 1,000 bytes"):
            read_labels(write(tmp_path / f"labels{SUFFIXES[form]}", LABELS * 20, form))


def test_a_confidence_that_is_too_large_for_a_float_is_certain(tmp_path):
    coco = {"images": [{"id": 1, "file_name": "1.jpg"}], "categories": [{"id": 1, "name": "cat"}]}
    scored = {**coco, "annotations": [{"image_id": 1, "category_id": 1, "score": 10**400}]}
    tasks = [{"data": {"image": "1.jpg"}, "predictions": [{"score": 10**400, "result": [choice("cat")]}]}]
    for content in (scored, tasks):
        (tmp_path / "a.json").write_text(json.dumps(content))
        assert [(item.label, item.confidence) for item in read_labels(tmp_path / "a.json")] == [("cat", 1.0)]


def test_predictions_are_not_learned(tmp_path):
    path = write(tmp_path / "labels.csv", [ImageLabel("a.jpg", "rose", by=MODEL, confidence=0.9)], "csv")
    with pytest.raises(HyCalError, match="1 have a prediction, which is not learned"):
        list_images(path)


def test_the_labeling_interface_names_every_class():
    root = ElementTree.fromstring(labeling_interface(NAMES))
    assert [element.get("value") for element in root.iter("Choice")] == NAMES
    assert parse_xml(labeling_interface(NAMES)).tag == "View"


def test_an_export_that_label_studio_wrote(tmp_path):
    content = json.loads((ROOT / "tests/golden/label-studio-1.23.json").read_text())["export"]
    found = read_labels(tasks_file(tmp_path, *content))
    assert [(item.file, item.name, item.by) for item in found] == [
        ("photos/blue é,0.png", "colour/blue", "user 1"),
        ("photos/green é,0.png", "green", "user 1"),
    ]


@pytest.mark.parametrize(
    ("form", "place"), [("cvat", "annotations.xml"), ("coco_labels", "annotations/labels_all.json")]
)
def test_datumaro_reads_what_is_written_and_writes_what_is_read(tmp_path, form, place):
    """Where Datumaro is installed, the library of CVAT."""
    datumaro = pytest.importorskip("datumaro")
    labels = [ImageLabel("red/1.jpg", "red", "colour"), ImageLabel("2.jpg", "blue", "colour")]
    for item in labels:
        image(tmp_path / "in" / "images" / ("" if form == "cvat" else "all") / item.file)
    (tmp_path / "in" / place).parent.mkdir(exist_ok=True)
    write(tmp_path / "in" / place, labels, form.partition("_")[0])
    found = datumaro.Dataset.import_from(str(tmp_path / "in"), form)
    found.export(str(tmp_path / "out"), form, save_media=False)
    (again,) = [*(tmp_path / "out").rglob("*.xml"), *(tmp_path / "out").rglob("labels*.json")]
    assert {(item.file, item.name) for item in read_labels(again)} == {(item.file, item.name) for item in labels}
