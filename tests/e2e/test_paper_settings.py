"""`hycal bench embed` and `run` of the paper's eleven settings, on small copies in the real layouts."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import hycal.encoders
from hycal.bench.domains import BenchDomain, read_domain
from hycal.validation import Floats, unit_rows
from tests.support.commands import hycal as run
from tests.support.encoders import TinyEncoder
from tests.support.paper_copies import CLASSES, published_shots, write_copies

pytest.importorskip("h5py")

FEW = ("artbench", "eurosat", "galaxy", "mnist", "organ")
SHOTS: Mapping[str, Mapping[str, int]] = {  # of the settings in which every class of a domain has the same
    "balanced": {"aircraft": 5, "dtd": 10, "flowers": 5, "organ": 45}
    | dict.fromkeys(("artbench", "eurosat", "galaxy", "mnist"), 50),
    "high-scale": {"aircraft": 10, "dtd": 20, "flowers": 10} | dict.fromkeys(FEW, 5),
    **{f"fscil-{shots}": dict.fromkeys((*FEW, "aircraft", "dtd", "flowers"), shots) for shots in (5, 10, 15, 20)},
    "two-domain-general": {"organ": 10, "dtd": 10},
    "two-domain-balanced": {"organ": 20, "dtd": 5},
    "two-domain-imbalanced": {"organ": 5, "dtd": 10},
    "x-tail": dict.fromkeys(
        ("aircraft", "caltech101", "dtd", "eurosat", "flowers", "food101", "mnist", "pets", "cars", "sun397"), 16
    ),
}
SETTINGS = (*SHOTS, "cross-scale")


class Reader(TinyEncoder):
    """The tiny encoder with a text tower; it keeps the texts and the sizes of images that it saw."""

    has_text = True

    def __init__(self) -> None:
        super().__init__(dimension=8)
        self.texts: list[list[str]] = []
        self.sizes: Counter[tuple[int, int]] = Counter()

    def preprocess(self, image):
        self.sizes[image.size] += 1
        return super().preprocess(image)

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        self.texts.append(list(texts))
        return unit_rows(np.random.default_rng(len(texts)).normal(size=(len(texts), self.dimension)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder with embeddings of both namings, the encoder of each, and the results of seed 42."""
    folder = tmp_path_factory.mktemp("paper")
    readers, said = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        for naming in ("hycal", "authors"):
            write_copies(folder / naming, naming)
            patch.setenv("HYCAL_CACHE", str(folder / f"cache-{naming}"))
            readers[naming] = Reader()
            patch.setattr(hycal.encoders, "load_encoder", lambda name, reader=readers[naming]: reader)
            embeddings = folder / f"embeddings-{naming}"
            embedded = run("bench", "embed", *SETTINGS, "--root", folder / naming, "--out", embeddings)
            assert "skipped" not in embedded
            options = ("--methods", "HyCal", "--seeds", "42", "--embeddings", embeddings, "--jobs", "1")
            said[naming] = run("bench", "run", *SETTINGS, *options, "--out", folder / "results")
    return folder, readers, said


def domains_of(folder: Path, naming: str) -> dict[str, BenchDomain]:
    return {name: read_domain(folder / f"embeddings-{naming}", name) for name in CLASSES}


def test_all_settings_run_and_both_namings_give_the_same(made):
    folder, _, said = made
    assert "11 runs" in said["hycal"]
    assert "0 runs" in said["authors"] and "11 known already" in said["authors"], "equal inputs, nothing to do"
    one, other = (domains_of(folder, naming) for naming in ("hycal", "authors"))
    assert {name: domain.digest() for name, domain in one.items()} == {k: d.digest() for k, d in other.items()}


def test_the_splits_are_those_of_the_paper(made):
    folder, _, _ = made
    for name, domain in domains_of(folder, "authors").items():
        each = (16, 2) if name == "galaxy" else (2, 1)
        assert np.bincount(domain.train_y).tolist() == [each[0]] * len(CLASSES[name])
        assert np.bincount(domain.test_y).tolist() == [each[1]] * len(CLASSES[name])


@pytest.mark.parametrize("naming", ["hycal", "authors"])
def test_organs_are_seen_with_224_pixels(made, naming):
    _, readers, _ = made
    organs, small = 3 * len(CLASSES["organ"]), (28, 28)
    assert readers[naming].sizes[224, 224] == organs
    assert readers[naming].sizes[small] == 3 * len(CLASSES["mnist"]), "only digits are so small"


def names_of(domain: BenchDomain) -> list[str]:
    """The class names of a domain as the paper's table of shots writes them."""
    if domain.name == "mnist":
        return [name[0] for name in domain.class_names]
    if domain.name == "artbench":
        table = {name.lower().replace(" ", "_").replace("-", "_"): name for name in CLASSES["artbench"]}
        return [table[name] for name in domain.class_names]
    return list(domain.class_names)


def shots_of(folder: Path, setting: str) -> dict[str, dict[str, int]]:
    """How many rows of each class a setting draws, by domain and class."""
    with (folder / "results" / "samples" / f"{setting}.42.csv").open() as file:
        drawn = Counter((row["domain"], int(row["label"])) for row in csv.DictReader(file))
    domains = domains_of(folder, "hycal")
    found: dict[str, dict[str, int]] = {}
    for (name, label), count in drawn.items():
        found.setdefault(name, {})[names_of(domains[name])[label]] = count
    return found


@pytest.mark.parametrize("setting", SHOTS)
def test_every_class_has_the_shots_of_its_setting(made, setting):
    folder, _, _ = made
    expected = {name: dict.fromkeys(CLASSES[name], shots) for name, shots in SHOTS[setting].items()}
    assert shots_of(folder, setting) == expected


def test_the_shots_of_cross_scale_are_the_published_table(made):
    folder, _, _ = made
    assert shots_of(folder, "cross-scale") == published_shots()


@pytest.mark.parametrize("setting", SETTINGS)
def test_results_count_the_images_of_every_domain(made, setting):
    folder, _, _ = made
    (path,) = (folder / "results" / "cells" / setting).glob("default.*.HyCal.42.json")
    cell = json.loads(path.read_bytes())
    shots = shots_of(folder, setting)
    assert cell["manifest"]["samples"] == {name: sum(by_class.values()) for name, by_class in shots.items()}
    assert cell["manifest"]["text"] is True
    tested = {name: len(CLASSES[name]) * (2 if name == "galaxy" else 1) for name in cell["manifest"]["domains"]}
    assert dict(zip(cell["manifest"]["domains"], cell["asked"], strict=True)) == tested


@pytest.mark.parametrize("naming", ["hycal", "authors"])
def test_the_prompts_are_those_of_the_released_code(made, naming):
    folder, readers, _ = made
    words = {
        "aircraft": "{}",
        "artbench": "painting in the {} style",
        "dtd": "{}",
        "eurosat": "{} satellite location",
        "galaxy": "{}",
        "organ": "a photo of a CT scan of {}",
        "flowers": "{}",
    }
    seen = {frozenset(texts) for texts in readers[naming].texts}
    for name, form in words.items():
        classes = [label.lower() if name == "artbench" else label for label in CLASSES[name]]
        assert frozenset(f"a photo of a {form.format(label)}." for label in classes) in seen
    digits = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    assert [f'a photo of a number: "{n} - {word}".' for n, word in enumerate(digits)] in readers[naming].texts
    assert len(readers[naming].texts) == len(CLASSES)
    order = domains_of(folder, naming)["flowers"].class_names
    assert [f"a photo of a {name}." for name in order] in readers[naming].texts, "a text for each label, in its order"
