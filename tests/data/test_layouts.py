import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hycal.data import ImageSet, prompts, read_dataset
from hycal.data.catalog import DataSetSpec, find_dataset, list_datasets
from hycal.data.layouts import READERS, dataset_folder, unlike_paper
from hycal.embedding.decoding import decode
from hycal.errors import HyCalError
from tests.support import datasets
from tests.support.data import DATA, needs

CLASSES = {
    "aircraft": ("707-320", "A300B4", "F/A-18"),
    "artbench": ("art_nouveau", "post_impressionism", "ukiyo_e"),
    "dtd": ("banded", "dotted"),
    "eurosat": ("AnnualCrop", "SeaLake"),
    "galaxy": find_dataset("galaxy").class_names,
    "mnist": find_dataset("mnist").class_names,
    "organ": find_dataset("organ").class_names,
    "flowers": ("flower 1", "flower 2"),
    "caltech101": ("airplanes", "yin_yang"),
    "food101": ("apple_pie", "waffles"),
    "pets": ("abyssinian", "yorkshire_terrier"),
    "cars": ("2000 AM General Hummer SUV", "2012 Audi TTS Coupe"),
    "sun397": ("abbey", "outdoor church"),
}
COUNTS = {
    "aircraft": {"train": 2, "val": 1, "test": 1},
    "artbench": {"train": 3, "test": 3},
    "dtd": {"train": 2, "val": 2, "test": 2},
    "eurosat": {"": 4},
    "galaxy": {"train": 160, "val": 20, "test": 20},
    "mnist": {"train": 20, "test": 10},
    "organ": {"train": 22, "val": 11, "test": 12},
    "flowers": {"train": 2, "val": 2, "test": 2},
    "caltech101": {"": 2},
    "food101": {"train": 2, "test": 2},
    "pets": {"train": 2, "test": 1},
    "cars": {"train": 2, "test": 2},
    "sun397": {"train": 2, "test": 1},
}


def build(name: str, root: Path) -> None:
    if name == "galaxy":
        pytest.importorskip("h5py")
    make: Callable[[Path], None] = getattr(datasets, name)
    make(root)


def every_image_decodes(images: ImageSet) -> bool:
    return all(decode(sample.source.read()).mode == "RGB" for sample in images.samples)


@pytest.mark.parametrize("name", CLASSES)
def test_each_set_in_its_published_layout(name: str, tmp_path: Path) -> None:
    build(name, tmp_path)
    images = read_dataset(name, tmp_path)
    assert images.class_names == CLASSES[name]
    assert images.counts() == COUNTS[name]
    assert every_image_decodes(images)


@pytest.mark.parametrize("name", CLASSES)
def test_each_set_beside_the_others(name: str, tmp_path: Path) -> None:
    for other in ("dtd", "food101", "pets", name):
        if not (tmp_path / other).exists():
            build(other, tmp_path / other)
    if name == "artbench":
        return  # its folders are called train and test, and nothing else: name them
    images = read_dataset(name, tmp_path)
    assert images.class_names == CLASSES[name] and every_image_decodes(images)


@pytest.mark.parametrize("name", CLASSES)
def test_an_empty_folder_is_an_error_that_says_what_is_missing(name: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(HyCalError, match="below"):
        read_dataset(name, tmp_path)
    with pytest.raises(HyCalError, match="no longer served" if name == "cars" else f"hycal data fetch {name} --root /"):
        read_dataset(name, tmp_path / "nowhere")


def test_every_reader_has_a_set_and_every_set_a_reader() -> None:
    assert {spec.layout for spec in list_datasets()} == set(READERS)
    assert {spec.name for spec in list_datasets()} == set(CLASSES)


def test_labels_follow_the_lists(tmp_path: Path) -> None:
    datasets.aircraft(tmp_path)
    images = read_dataset("aircraft", tmp_path)
    train = [(Path(s.source.name).stem, images.class_names[s.label]) for s in images.of("train")]
    assert train == [("0000002", "A300B4"), ("0000001", "707-320")]
    datasets.cars(tmp_path)
    cars = read_dataset("cars", tmp_path)
    assert [(Path(s.source.name).name, s.label) for s in cars.of("test")] == [
        ("00002.jpg", 1),
        ("00001.jpg", 0),
    ]


def test_mnist_plain_and_packed_are_the_same(tmp_path: Path) -> None:
    datasets.mnist(tmp_path / "a")
    datasets.mnist(tmp_path / "b", packed=False)
    one, other = (read_dataset("mnist", tmp_path / part) for part in "ab")
    for left, right in zip(one.samples, other.samples, strict=True):
        assert np.array_equal(left.source.read(), right.source.read()) and left.label == right.label


@pytest.mark.parametrize("damage", [b"", b"\0\0\x0d\x03", b"\0\0\x08\x03\0\0\0\x05", b"PK"])
def test_a_damaged_idx_file_is_named(damage: bytes, tmp_path: Path) -> None:
    datasets.mnist(tmp_path, packed=False)
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(damage)
    with pytest.raises(HyCalError, match="train-images-idx3-ubyte"):
        read_dataset("mnist", tmp_path)


def test_medmnist_npz_and_export_agree(tmp_path: Path) -> None:
    datasets.organ(tmp_path / "npz")
    datasets.organ_export(tmp_path / "export")
    one, other = (read_dataset("organ", tmp_path / part) for part in ("npz", "export"))
    assert [(s.label, s.split) for s in one.samples] == [(s.label, s.split) for s in other.samples]
    for left, right in zip(one.samples, other.samples, strict=True):
        assert np.array_equal(np.asarray(decode(left.source.read())), np.asarray(decode(right.source.read())))


def test_organs_of_224_pixels_are_preferred(tmp_path: Path) -> None:
    datasets.organ(tmp_path / "a", "organamnist")
    assert decode(read_dataset("organ", tmp_path).samples[0].source.read()).size == (28, 28)
    assert "no organamnist_224 below" in unlike_paper(find_dataset("organ"), tmp_path)
    datasets.organ_export(tmp_path / "b")
    assert decode(read_dataset("organ", tmp_path).samples[0].source.read()).size == (224, 224)
    assert not unlike_paper(find_dataset("organ"), tmp_path)


def test_galaxies_are_the_jpeg_files_of_the_authors(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    datasets.galaxy(tmp_path)
    source = read_dataset("galaxy", tmp_path).samples[3].source
    with h5py.File(tmp_path / "Galaxy10_DECals.h5") as file:
        pixels = file["images"][3]
    Image.fromarray(pixels).save(tmp_path / "00003.jpg")  # as the authors' converter does
    assert source.read() == (tmp_path / "00003.jpg").read_bytes()
    assert pickle.loads(pickle.dumps(source)).read() == source.read()
    assert source.name == "Galaxy10_DECals.h5[3]"


@pytest.mark.parametrize("spec", list_datasets(), ids=lambda spec: spec.name)
def test_a_folder_is_found_by_its_name_and_by_its_aliases(spec: DataSetSpec, tmp_path: Path) -> None:
    for name in (*reversed(spec.aliases), spec.name):
        (tmp_path / name).mkdir()
        assert dataset_folder(spec, tmp_path) == tmp_path / name
    with pytest.raises(HyCalError, match=f"has no folder {' or '.join((spec.name, *spec.aliases))}"):
        dataset_folder(spec, tmp_path / spec.name)


def test_galaxy_split_is_stratified_and_fixed(tmp_path: Path) -> None:
    build("galaxy", tmp_path)
    images = read_dataset("galaxy", tmp_path)
    for split, each in (("train", 16), ("val", 2), ("test", 2)):
        assert Counter(sample.label for sample in images.of(split)) == dict.fromkeys(range(10), each)
    first = [i for i, sample in enumerate(images.samples) if sample.split == "test"][:5]
    assert first == [i for i, s in enumerate(read_dataset("galaxy", tmp_path).samples) if s.split == "test"][:5]


def test_coop_split_wins_and_keeps_its_order(tmp_path: Path) -> None:
    datasets.dtd(tmp_path)
    listed: dict[str, list[list[object]]] = {
        "train": [["dotted/dotted_0002.jpg", 1, "dotted"], ["banded/banded_0003.jpg", 0, "banded"]],
        "val": [],
        "test": [["banded/banded_0004.jpg", 0, "banded"]],
    }
    datasets.coop_split(tmp_path / "dtd" / "split_zhou_DescribableTextures.json", listed)
    images = read_dataset("dtd", tmp_path)
    assert images.counts() == {"train": 2, "test": 1} and [s.label for s in images.of("train")] == [1, 0]
    assert every_image_decodes(images)


@pytest.mark.parametrize(
    "entry", [["../../etc/passwd", 0, "x"], ["/etc/passwd", 0, "x"], ["a.jpg", "0", "x"], ["a.jpg", 0]]
)
def test_a_split_file_cannot_leave_the_folder(entry: list[object], tmp_path: Path) -> None:
    datasets.dtd(tmp_path)
    path = tmp_path / "dtd" / "split_zhou_DescribableTextures.json"
    datasets.coop_split(path, {"train": [entry], "val": [], "test": []})
    with pytest.raises(HyCalError, match="entry"):
        read_dataset("dtd", tmp_path)


def test_prompts_are_those_of_the_paper() -> None:
    expected = {
        ("aircraft", "707-320"): "a photo of a 707-320.",
        ("dtd", "honey_combed"): "a photo of a honey combed.",
        ("eurosat", "SeaLake"): "a photo of a Sea or Lake satellite location.",
        ("eurosat", "Sea or Lake"): "a photo of a Sea or Lake satellite location.",
        ("mnist", "7 - seven"): 'a photo of a number: "7 - seven".',
        ("artbench", "post_impressionism"): "a photo of a painting in the post-impressionism style.",
        ("artbench", "ukiyo_e"): "a photo of a painting in the ukiyo-e style.",
        ("organ", "bladder"): "a photo of a a photo of a CT scan of bladder.",
        ("galaxy", "Disturbed Galaxies"): "a photo of a Disturbed Galaxies.",
    }
    for (name, label), prompt in expected.items():
        assert prompts(find_dataset(name), [label]) == [prompt]


@needs("splits")
@pytest.mark.parametrize("name", ["caltech101", "dtd", "eurosat", "flowers", "pets", "cars"])
def test_published_split_files_agree_with_the_table(name: str, tmp_path: Path) -> None:
    spec = find_dataset(name)
    (tmp_path / spec.split_images).mkdir(exist_ok=True)
    (tmp_path / spec.split_file).write_bytes((DATA / "splits" / spec.split_file).read_bytes())
    images = read_dataset(name, tmp_path)
    assert images.counts() == spec.images and len(images.class_names) == spec.classes
    if name == "flowers":  # the order of the paper's table of shots
        first = dict.fromkeys(images.class_names[sample.label] for sample in images.of("train"))
        assert list(first)[:4] == ["passion flower", "water lily", "cyclamen", "watercress"]
