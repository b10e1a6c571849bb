"""A graph from pixels to probabilities gives the model's answers, in ONNX Runtime and in ONNX Runtime Web."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image
from typer.testing import CliRunner

from hycal import NCM, HierarchicalHyCal, HyCalError
from hycal.cli import app
from hycal.encoders import load_encoder
from hycal.encoders.preprocessing import Preprocessing
from hycal.export.onnx_head import export_onnx, exportable, onnx_head
from tests.encoders.small_clip import write_transformers
from tests.support.encoders import ColourEncoder

BOUND = 1e-4  # on probabilities; docs/how-to/deploy.md states it
NODE_PACKAGES = "HYCAL_NODE_PACKAGES"  # the folder where npm has installed onnxruntime-web; `make test-node` sets it
SCRIPT = Path(__file__).with_name("onnx_runtime_web.mjs")


def pictures(count: int, kind: int) -> list[Image.Image]:
    rng = np.random.default_rng(kind)
    ground = rng.integers(0, 256, (6, 8, 3))
    noise = (np.clip(ground + rng.normal(0, 20, ground.shape), 0, 255).astype(np.uint8) for _ in range(count))
    return [Image.fromarray(pixels).resize((320, 240), Image.Resampling.BICUBIC) for pixels in noise]


def taught(encoder, classifier):
    """A classifier of three kinds of drawings, and the pixels of twelve others with their probabilities."""
    embed = lambda images: encoder.encode(np.stack([encoder.preprocess(image) for image in images]))  # noqa: E731
    for kind in range(3):
        classifier.partial_fit(embed(pictures(5, kind)[:3]), [f"drawing/{kind}"] * 3, domain="drawing")
    asked = [image for kind in range(3) for image in pictures(7, kind)[3:]]
    pixels = np.stack([np.asarray(encoder.preprocessing.crop(image)) for image in asked])
    return classifier, pixels, classifier.predict_proba(embed(asked)), classifier.predict(embed(asked))


def test_pixels_go_in_and_the_probabilities_of_python_come_out():
    encoder = load_encoder("builtin")
    model, pixels, chances, labels = taught(encoder, HierarchicalHyCal())
    session = onnxruntime.InferenceSession(onnx_head(model, encoder), providers=["CPUExecutionProvider"])
    _, found, named = session.run(None, {"pixels": pixels})
    np.testing.assert_allclose(found, chances, atol=BOUND)
    np.testing.assert_array_equal(named, labels)
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["preprocessing"]) == encoder.preprocessing.to_json()
    assert json.loads(facts["labels"]) == ["drawing/0", "drawing/1", "drawing/2"]


def test_an_encoder_that_is_built_from_a_checkpoint(tmp_path):
    encoder = load_encoder("clip-vit-b16", weights=write_transformers(tmp_path, activation="gelu"))
    model, pixels, chances, _ = taught(encoder, NCM())
    session = onnxruntime.InferenceSession(onnx_head(model, encoder), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(["probabilities"], {"pixels": pixels})[0], chances, atol=BOUND)


def test_the_same_in_onnx_runtime_web(tmp_path):
    packages = os.environ.get(NODE_PACKAGES)
    if packages is None and (shutil.which("node") is None or not Path(".node/node_modules/onnxruntime-web").is_dir()):
        pytest.skip("needs node and onnxruntime-web: make test-node")
    encoder = load_encoder("builtin")
    model, pixels, chances, labels = taught(encoder, HierarchicalHyCal())
    export_onnx(model, tmp_path / "whole.onnx", encoder=encoder)
    pixels.tofile(tmp_path / "pixels")
    command = ["node", SCRIPT, packages or ".node", tmp_path / "whole.onnx", tmp_path / "pixels", pixels.shape[1]]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["labels"] == labels.tolist()
    np.testing.assert_allclose(np.reshape(found["probabilities"], chances.shape), chances, atol=BOUND)


class GivenTower:
    """An encoder with any graph."""

    name = "given"
    preprocessing = Preprocessing(size=4, resize=4)

    def __init__(self, *, operator: str = "Flatten", domain: str = "", version: int = 17, inputs: int = 1) -> None:
        names = [f"x{number}" for number in range(inputs)]
        node = onnx.helper.make_node(operator, names[:1], ["image_embeds"], domain=domain)
        kind = onnx.TensorProto.FLOAT
        given = [onnx.helper.make_tensor_value_info(name, kind, ["batch", 3, 4, 4]) for name in names]
        result = onnx.helper.make_tensor_value_info("image_embeds", kind, ["batch", 48])
        graph = onnx.helper.make_graph([node], "given", given, [result])
        versions = [onnx.helper.make_opsetid("", version)] + ([onnx.helper.make_opsetid(domain, 1)] if domain else [])
        self._model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)

    def image_graph(self) -> bytes:
        return self._model.SerializeToString()


@pytest.fixture(scope="module")
def model():
    return NCM().fit(np.eye(48), [f"a/{number % 3}" for number in range(48)], domain="a")


@pytest.mark.parametrize("version", [13, 17, 19])
def test_operators_of_another_version_are_converted(model, version):
    session = onnxruntime.InferenceSession(onnx_head(model, GivenTower(version=version)))
    assert session.run(["label"], {"pixels": np.zeros((2, 4, 4, 3), np.uint8)})[0].shape == (2,)


@pytest.mark.parametrize(
    ("tower", "reason"),
    [
        (GivenTower(domain="com.microsoft"), "operators beyond ONNX"),
        (GivenTower(inputs=2), "takes 2 inputs; expected one"),
    ],
)
def test_a_graph_that_cannot_be_part_of_another_is_refused(model, tower, reason):
    with pytest.raises(HyCalError, match=reason):
        onnx_head(model, tower)
    with pytest.raises(HyCalError, match="is not one ONNX graph"):
        exportable(ColourEncoder())


def test_the_command_wants_the_encoder_where_weights_are_named(model, tmp_path):
    model.save(tmp_path / "m.hycal")
    for options, reason in ((["--weights", "."], "Add --with-encoder"), (["--with-encoder"], "which encoder")):
        out = str(tmp_path / "m.onnx")
        done = CliRunner().invoke(app, ["export", str(tmp_path / "m.hycal"), "--onnx", out, *options])
        assert done.exit_code == 1 and reason in " ".join(done.stderr.split())
        assert not Path(out).exists()
