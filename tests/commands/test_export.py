"""`hycal export`: the head of a model as ONNX."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from hycal import load
from hycal.project import Project
from tests.support.commands import hycal, hycal_error, hycal_json


def test_the_graph_gives_the_answers_of_the_model(learned, tmp_path):
    hycal_json("export", learned.path, "--onnx", tmp_path / "both.onnx")
    model, classes = load(learned.path), Project(learned.path).state.classes
    rows = np.concatenate([examples.rows for examples in classes.values()])
    session = onnxruntime.InferenceSession(tmp_path / "both.onnx", providers=["CPUExecutionProvider"])
    labels = session.run(["label"], {"embeddings": rows})[0]
    assert labels.tolist() == model.predict(rows).tolist()


def test_people_read_what_the_graph_takes(learned, tmp_path):
    path = tmp_path / "digits.onnx"
    said = hycal("export", learned.path, "--onnx", path)
    assert said == f"{path}: 6 classes, {path.stat().st_size:,} bytes; embeddings of 'builtin' go in\n"


def test_only_a_graph_of_hycal_is_replaced_or_any_file_by_force(learned, tmp_path):
    path = tmp_path / "digits.onnx"
    path.write_bytes(b"a network of somebody else")
    assert "not replaced" in hycal_error("export", learned.path, "--onnx", path)
    hycal("export", learned.path, "--onnx", path, "--force")
    hycal("export", learned.path, "--onnx", path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("name", ["x.txt", "x"])
def test_the_file_ends_in_onnx(learned, tmp_path, name):
    assert "ends in .onnx" in hycal_error("export", learned.path, "--onnx", tmp_path / name)
