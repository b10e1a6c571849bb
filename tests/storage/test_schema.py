"""The JSON schema of the manifest describes what hycal writes and refuses the rest."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from safetensors import safe_open

from hycal import GDA, METHODS, HyCal
from hycal.project.sealed import seal
from hycal.project.state_file import StateFile
from hycal.testing.streams import Stream, learn
from tests.support.data import ROOT
from tests.support.projects import pets_and_cars
from tests.support.schemas import schema

SCHEMA = schema("manifest")
STREAM = Stream.synthetic(0, shots=[[3, 2], [4]], width=8)
GOLDEN = sorted(path for path in (ROOT / "tests" / "golden").iterdir() if path.suffix in (".safetensors", ".hycal"))


def manifest(path):
    with safe_open(str(path), framework="numpy") as file:
        return json.loads(file.metadata()["hycal"])


@pytest.mark.parametrize("name", METHODS)
def test_the_manifest_of_every_method_fits(name, tmp_path):
    model = learn(METHODS[name](), STREAM.steps)
    versions = {("open", "single"): 2, ("open", "half"): 3}
    models = {"open": model}
    if model.sealing.keeps:
        models["sealed"] = model.seal()
        versions |= {("sealed", "single"): 3, ("sealed", "half"): 3}
    for (kind, precision), version in versions.items():
        models[kind].save(tmp_path / "model", precision=precision)
        found = manifest(tmp_path / "model")
        SCHEMA.validate(found)
        assert found["version"] == version and ("sealed" in found) == (kind == "sealed")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_the_golden_files_of_every_version_fit(path):
    SCHEMA.validate(manifest(path))


def test_projects_fit_open_and_sealed(tmp_path):
    project = pets_and_cars(tmp_path / "open.hycal")
    project.forget("pets/dog")
    project.undo()
    SCHEMA.validate(manifest(tmp_path / "open.hycal"))
    StateFile.create(tmp_path / "sealed.hycal", seal(project.state))
    SCHEMA.validate(manifest(tmp_path / "sealed.hycal"))


def test_a_sealed_model_of_several_views_fits(tmp_path):
    model = learn(GDA(views=(6, 2)), STREAM.in_views((6, 2)).steps).seal()
    model.save(tmp_path / "model")
    sound = manifest(tmp_path / "model")
    SCHEMA.validate(sound)
    sound["sealed"]["views"][0] = None
    SCHEMA.validate(sound)
    sound["sealed"]["views"][0] = {"keeps": "means"}
    assert not SCHEMA.is_valid(sound)


FAULTS = {
    "no method": lambda m: m.pop("method"),
    "labels of two kinds": lambda m: m.update(labels=["a", 1]),
    "a version to come": lambda m: m.update(version=4),
    "another key": lambda m: m.update(code="import os"),
    "a sealed model of version 2": lambda m: m.update(version=2),
    "nothing that is known kept": lambda m: m["sealed"].update(keeps="images"),
    "another precision": lambda m: m.update(precision="double"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_hycal_does_not_write_is_refused(fault, tmp_path):
    learn(HyCal(), STREAM.steps).seal().save(tmp_path / "model")
    sound = manifest(tmp_path / "model")
    SCHEMA.validate(sound)
    FAULTS[fault](broken := deepcopy(sound))
    assert not SCHEMA.is_valid(broken)
