"""A method of another package: found through its entry point, then like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hycal
from hycal import NCM, HyCalError, ModelFileError
from hycal.classifiers import registry
from hycal.testing.packages import write_method_package

SOURCE = Path(hycal.__file__).parents[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Write a package, install it in a folder of its own; return the variables under which Python finds it."""
    folder = tmp_path_factory.mktemp("site")
    package = write_method_package("NearestMedian", tmp_path_factory.mktemp("new") / "nearest-median")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", folder, package], check=True, timeout=300
    )
    places = {"PYTHONPATH": os.pathsep.join([str(folder), str(SOURCE)]), "HYCAL_CACHE": str(folder / "cache")}
    return {**os.environ, **places, "PACKAGE": str(package)}


def run(environment: dict[str, str], *arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hycal_command(environment: dict[str, str], *arguments: str, cwd: Path) -> str:
    return run(environment, "-c", "from hycal.cli import app; app()", *arguments, cwd=cwd)


def test_its_own_tests_pass(environment, tmp_path):
    said = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", environment["PACKAGE"], cwd=tmp_path)
    assert "2 passed" in said


def test_it_keeps_the_laws_and_is_tuned_and_exported(environment, tmp_path):
    script = """
import numpy as np, onnxruntime
from hycal import METHODS
from hycal.export.onnx_head import onnx_head
from hycal.testing import Stream, check_laws, learn
assert list(METHODS)[-1] == "NearestMedian" and "NearestMedian" in METHODS
classifier = METHODS.build("NearestMedian", profile="robust")
check_laws(classifier)
stream = Stream.synthetic(0, shots=[[5, 4], [6]], width=8)
learn(classifier, stream.steps).tune()
session = onnxruntime.InferenceSession(onnx_head(classifier))
scores = session.run(["scores"], {"embeddings": stream.queries.astype(np.float32)})[0]
np.testing.assert_allclose(scores, classifier.decision_function(stream.queries), atol=1e-5)
"""
    run(environment, "-c", script, cwd=tmp_path)


def test_it_is_loaded_from_a_file_where_it_is_installed_and_named_where_it_is_not(environment, tmp_path):
    path = tmp_path / "model.safetensors"
    fit = "METHODS['NearestMedian']().fit([[1, 0], [0, 1]], ['a', 'b'])"
    write = f"from hycal import METHODS; {fit}.save({str(path)!r})"
    run(environment, "-c", write, cwd=tmp_path)
    read = f"import hycal; print(type(hycal.load({str(path)!r})).__module__)"
    assert run(environment, "-c", read, cwd=tmp_path).strip() == "nearest_median"
    with pytest.raises(ModelFileError, match="names the method 'NearestMedian'"):
        hycal.load(path)


def test_it_is_listed_and_benchmarked(environment, tmp_path):
    assert "NearestMedian" in hycal_command(environment, "bench", "list", cwd=tmp_path)
    chosen = ("--methods", "NearestMedian", "--seeds", "0", "--out", "results")
    hycal_command(environment, "bench", "run", "xd8-balanced", *chosen, cwd=tmp_path)
    hycal_command(environment, "bench", "report", "results", cwd=tmp_path)
    assert "NearestMedian" in (tmp_path / "results" / "report.md").read_text(encoding="utf-8")


def test_it_learns_photos_and_is_served(environment, tmp_path):
    rng = np.random.default_rng(0)
    for label in ("dark", "light"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(2):
            level = 40 if label == "dark" else 200
            pixels = rng.integers(level, level + 40, (32, 32, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / label / f"{number}.png")
    hycal_command(environment, "learn", "model.hycal", "photos", "--method", "NearestMedian", cwd=tmp_path)
    told = json.loads(hycal_command(environment, "info", "model.hycal", "--json", cwd=tmp_path))
    assert told["method"] == "NearestMedian"
    script = """
from starlette.testclient import TestClient
from hycal.project import Project
from hycal.serve.app import make_app
from hycal.serve.service import Service
project = Project("model.hycal")
with TestClient(make_app(Service(project, None)), base_url="http://localhost:8000") as client:
    assert client.get("/api/info").json()["method"] == "NearestMedian"
    row = project.state.classifier.records_.stacked()[0].tolist()
    answer = client.post("/api/classify-embeddings", json={"rows": [row]})
    assert answer.json()["answers"][0]["candidates"][0]["label"] == "photos/dark", answer.text
"""
    run(environment, "-c", script, cwd=tmp_path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nowhere_at_all:Thing", "importing nowhere_at_all:Thing failed: ModuleNotFoundError"),
        ("hycal.classifiers.ncm:NCM", "not a subclass of hycal.base.IncrementalClassifier called Thing"),
        ("json:loads", "not a subclass"),
    ],
)
def test_a_package_that_offers_something_else_is_named(value, message, monkeypatch):
    point = EntryPoint("Thing", value, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))
    methods = registry.MethodRegistry({"NCM": "hycal.classifiers.ncm"})
    assert list(methods) == ["NCM", "Thing"] and len(methods) == 2
    assert methods["NCM"] is NCM
    with pytest.raises(HyCalError, match=message):
        methods.find("Thing")


def test_no_package_replaces_a_method_of_ours(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: (EntryPoint("NCM", "json:loads", group),))
    methods = registry.MethodRegistry({"NCM": "hycal.classifiers.ncm"})
    assert list(methods) == ["NCM"] and methods["NCM"] is NCM
