"""The builder of the bundled embeddings, with a tiny encoder; and what it built, against the reference."""

import importlib.util
import io
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from hycal.data import bundled
from hycal.embedding import EmbeddingCache, ImageFile, embed
from hycal.embedding.sources import image_files
from tests.support.data import DATA, ROOT, needs
from tests.support.encoders import TinyEncoder
from tests.support.images import make_folder


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_xd8", ROOT / "tools" / "build_xd8.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_images_become_package_data(tool: ModuleType, tmp_path: Path) -> None:
    for name in ("digit", "art"):
        make_folder(tmp_path / "images" / name / "train", images=4)
        make_folder(tmp_path / "images" / name / "test", images=3)
    encoder = TinyEncoder()
    for out in ("one", "two"):
        with EmbeddingCache.of(encoder, tmp_path / "cache") as cache:
            tool.build(
                tmp_path / "images",
                tmp_path / out,
                encoder=encoder,
                store=cache,
                console=Console(file=io.StringIO()),
            )
    domains = bundled.read_domains(tmp_path / "one")
    assert list(domains) == ["art", "digit"] and domains["art"].class_names == ("class_0", "class_1")
    for name, domain in domains.items():
        for split, rows, labels in (
            ("train", domain.train_x, domain.train_y),
            ("test", domain.test_x, domain.test_y),
        ):
            paths = image_files(tmp_path / "images" / name / split)
            assert np.allclose(rows, embed([ImageFile(path) for path in paths], encoder).rows, atol=1e-3)
            assert [f"class_{label}" for label in labels] == [path.parent.name for path in paths]
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    provenance = bundled._provenance(tmp_path / "one")
    assert provenance["encoder"] == "tiny-0" and len(provenance["images_sha256"]) == 64


def test_a_broken_image_stops_the_build(tool: ModuleType, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "images" / "digit" / "train")
    (folder / "class_0" / "broken.png").write_bytes(b"x")
    console = Console(file=io.StringIO())
    with (
        EmbeddingCache.of(TinyEncoder(), tmp_path / "cache") as cache,
        pytest.raises(SystemExit, match="broken"),
    ):
        tool.build(tmp_path / "images", tmp_path / "out", encoder=TinyEncoder(), store=cache, console=console)
    assert not (tmp_path / "out").exists()


# The reference: the first files of each class in name order; nearest-mean accuracy where it is published.
COUNTS = {"satellite": (25, 12), "aircraft": (15, 8), "flower": (10, 5)}
ACCURACY = {"texture": 84.0, "digit": 73.5, "medical": 73.0, "galaxy": 41.2, "art": 78.0, "satellite": 87.3}


def first_of_each_class(rows: np.ndarray, labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    chosen = np.concatenate([np.flatnonzero(labels == label)[:count] for label in np.unique(labels)])
    return rows[chosen], labels[chosen]


def nearest_mean(train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> float:
    means = np.stack([train[0][train[1] == label].mean(axis=0) for label in np.unique(train[1])])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return 100 * float(((test[0] @ means.T).argmax(axis=1) == test[1]).mean())


def same_crop(name: str, split: str, class_names: tuple[str, ...], count: int) -> np.ndarray:
    """Which of the first images of each class the reference cropped as CLIP does.

    CLIP rounds half a pixel of margin to the even neighbour, the reference always down: where that differs, the two
    saw squares one pixel apart.
    """
    same = []
    for class_name in class_names:
        for path in sorted((DATA / "xd8-images" / name / split / class_name).iterdir())[:count]:
            with Image.open(path) as image:
                short, long = sorted(image.size)
            margin = int(224 * long / short) - 224
            same.append(round(margin / 2) == margin // 2)
    return np.array(same)


@needs("clip-vitb16")
@needs("xd8-images")
@pytest.mark.parametrize("name", ["aircraft", "art", "digit", "flower", "galaxy", "medical", "satellite", "texture"])
def test_bundled_embeddings_are_those_of_the_reference(name: str) -> None:
    domain = bundled.load_xd8()[name]
    n_train, n_test = COUNTS.get(name, (30, 20))
    train = first_of_each_class(domain.train_x, domain.train_y, n_train)
    test = first_of_each_class(domain.test_x, domain.test_y, n_test)
    with np.load(DATA / "clip-vitb16" / f"{name}.npz") as reference:
        assert tuple(reference["class_names"].tolist()) == domain.class_names
        for (rows, labels), split in ((train, "train"), (test, "test")):
            assert np.array_equal(labels, reference[f"{split}_y"])
            cosines = (rows * reference[f"{split}_x"].astype(np.float32)).sum(axis=1)
            same = same_crop(name, split, domain.class_names, n_train if split == "train" else n_test)
            assert cosines[same].min() >= 0.99
            assert cosines.min() >= 0.95
    if name in ACCURACY:
        assert nearest_mean(train, test) == pytest.approx(ACCURACY[name], abs=0.55)
