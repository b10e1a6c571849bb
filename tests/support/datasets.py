"""Small data sets in the true layout of the large ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.io import savemat

from tests.support.images import picture


def image(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(seed).save(path)
    return path


def text(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def aircraft(root: Path) -> None:
    data = root / "fgvc-aircraft-2013b" / "data"
    text(data / "variants.txt", ["707-320", "A300B4", "F/A-18"])
    text(data / "families.txt", ["Boeing 707", "A300", "F/A-18"])
    text(data / "images_variant_train.txt", ["0000002 A300B4", "0000001 707-320"])
    text(data / "images_variant_val.txt", ["0000003 F/A-18"])
    text(data / "images_variant_test.txt", ["0000004 707-320"])
    text(data / "images_variant_trainval.txt", ["0000001 707-320", "0000002 A300B4", "0000003 F/A-18"])
    for number in range(1, 5):
        image(data / "images" / f"000000{number}.jpg", number)


def artbench(root: Path) -> None:
    for split in ("train", "test"):
        for style in ("art_nouveau", "post_impressionism", "ukiyo_e"):
            folder = root / "artbench-10-imagefolder-split" / split / style
            image(folder / f"someone_a-picture-{split}-{style}.jpg")


def dtd(root: Path) -> None:
    for split, number in (("train", 2), ("val", 3), ("test", 4)):
        names = [f"{label}/{label}_000{number}.jpg" for label in ("banded", "dotted")]
        text(root / "dtd" / "labels" / f"{split}1.txt", names)
        text(root / "dtd" / "labels" / f"{split}2.txt", names[:1])
        for name in names:
            image(root / "dtd" / "images" / name)


def eurosat(root: Path) -> None:
    for label in ("AnnualCrop", "SeaLake"):
        for number in (1, 2):
            image(root / "2750" / label / f"{label}_{number}.jpg", number)


def galaxy(root: Path, count: int = 200) -> None:
    import h5py

    root.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    with h5py.File(root / "Galaxy10_DECals.h5", "w") as file:
        file["images"] = random.integers(0, 256, (count, 16, 16, 3), dtype=np.uint8)
        file["ans"] = (np.arange(count) % 10).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def mnist(root: Path, *, packed: bool = True) -> None:
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for prefix, count in (("train", 20), ("t10k", 10)):
        images, labels = random.integers(0, 256, (count, 28, 28)), np.arange(count) % 10
        for kind, content in (("images-idx3", idx(images)), ("labels-idx1", idx(labels))):
            path = folder / f"{prefix}-{kind}-ubyte"
            if packed:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)


def organ_arrays(side: int = 224) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    arrays = {}
    for split, count in (("train", 22), ("val", 11), ("test", 12)):
        arrays[f"{split}_images"] = random.integers(0, 256, (count, side, side), dtype=np.uint8)
        arrays[f"{split}_labels"] = (np.arange(count) % 11).astype(np.uint8)[:, None]
    return arrays


def organ(root: Path, edition: str = "organamnist_224") -> None:
    root.mkdir(parents=True, exist_ok=True)
    np.savez(root / f"{edition}.npz", **organ_arrays(224 if edition.endswith("_224") else 28))


def organ_export(root: Path) -> None:
    from PIL import Image

    folder = root / "organamnist_224"
    folder.mkdir(parents=True)
    arrays = organ_arrays()
    lines = []
    for split, word in (("train", "TRAIN"), ("val", "VALIDATION"), ("test", "TEST")):
        for number, pixels in enumerate(arrays[f"{split}_images"]):
            label = int(arrays[f"{split}_labels"][number, 0])
            name = f"{split}{number}_{label}.png"
            Image.fromarray(pixels).save(folder / name)
            lines.append(f"{word},{name},{label}")
    text(root / "organamnist_224.csv", lines)


def flowers(root: Path) -> None:
    folder = root / "flowers-102"
    for number in range(1, 7):
        image(folder / "jpg" / f"image_{number:05d}.jpg", number)
    savemat(folder / "imagelabels.mat", {"labels": np.array([[1, 1, 1, 2, 2, 2]], dtype=np.uint8)})
    sets = {"trnid": [[1, 4]], "valid": [[2, 5]], "tstid": [[3, 6]]}
    savemat(folder / "setid.mat", {key: np.array(value, dtype=np.uint16) for key, value in sets.items()})


def caltech101(root: Path) -> None:
    for label in ("airplanes", "yin_yang", "Faces_easy", "BACKGROUND_Google"):
        image(root / "caltech-101" / "101_ObjectCategories" / label / "image_0001.jpg")
    text(root / "caltech-101" / "101_ObjectCategories" / "BACKGROUND_Google" / "tmp", ["x"])


def food101(root: Path) -> None:
    base = root / "food-101"
    for split, number in (("train", 11), ("test", 12)):
        listed = {label: [f"{label}/{number}"] for label in ("apple_pie", "waffles")}
        text(base / "meta" / f"{split}.json", [json.dumps(listed)])
        for files in listed.values():
            image(base / "images" / f"{files[0]}.jpg")


def pets(root: Path) -> None:
    text(root / "annotations" / "trainval.txt", ["Abyssinian_100 1 1 1", "yorkshire_terrier_9 2 2 25"])
    text(root / "annotations" / "test.txt", ["Abyssinian_201 1 1 1"])
    for name in ("Abyssinian_100", "yorkshire_terrier_9", "Abyssinian_201"):
        image(root / "images" / f"{name}.jpg")


def cars(root: Path) -> None:
    base = root / "stanford_cars"
    for split in ("train", "test"):
        for number in (1, 2):
            image(base / f"cars_{split}" / f"0000{number}.jpg", number)
    (base / "devkit").mkdir()
    names = np.array(["AM General Hummer SUV 2000", "Audi TTS Coupe 2012"], dtype=object)
    savemat(base / "devkit" / "cars_meta.mat", {"class_names": names})
    kinds = [("bbox_x1", "u1"), ("class", "u1"), ("fname", object)]
    annotations = np.array([(1, 1, "00001.jpg"), (1, 2, "00002.jpg")], dtype=kinds)
    savemat(base / "devkit" / "cars_train_annos.mat", {"annotations": annotations})
    savemat(base / "cars_test_annos_withlabels.mat", {"annotations": annotations[::-1]})


def sun397(root: Path) -> None:
    names = {
        "Training_01": ["/a/abbey/sun_a.jpg", "/c/church/outdoor/sun_b.jpg"],
        "Testing_01": ["/a/abbey/sun_c.jpg"],
    }
    for list_name, files in names.items():
        text(root / f"{list_name}.txt", files)
        for file in files:
            image(root / "SUN397" / file.strip("/"))
    text(root / "SUN397" / "ClassName.txt", ["/a/abbey", "/c/church/outdoor"])


def coop_split(path: Path, files: dict[str, list[list[object]]]) -> None:
    text(path, [json.dumps(files)])
