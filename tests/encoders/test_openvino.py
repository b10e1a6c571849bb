"""The OpenVINO back end: what it computes, when it is chosen, and which embeddings it continues.

The choice is tested with a stand-in for the image tower. What runs OpenVINO itself is skipped where it is not
installed: `make test-openvino` installs it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hycal.encoders import catalog, load_encoder, openvino_backend
from hycal.encoders.catalog import find_encoder
from hycal.encoders.golden import embed_golden
from hycal.encoders.onnx_backend import Graph, image_tower
from hycal.encoders.status import check_files, try_out
from hycal.errors import HyCalError
from hycal.project import empty_state
from hycal.project.encoder import encoder_of, encoder_space
from tests.support.commands import run_hycal

needs_openvino = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="needs openvino: run `make test-openvino`"
)
GROUP, SIZE, WIDTH = 64, 8, 32


def write_package(folder: Path, name: str, code: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(code)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An OpenVINO that can be found, and an encoder that may run on it."""
    write_package(tmp_path, "openvino", "")
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.delitem(sys.modules, "openvino")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("HYCAL_BACKEND", raising=False)
    entries = [
        {**entry, "openvino_group": GROUP} for entry in catalog._table()["encoder"] if entry["name"] == "builtin"
    ]
    monkeypatch.setattr(catalog, "_table", lambda: {"encoder": entries})


def run_with_error(monkeypatch: pytest.MonkeyPatch, angle: float) -> None:
    """Let OpenVINO give rows that lie so far from those of ONNX Runtime."""

    def tower(model: Path, *, size: int, group: int, threads: int | None = None):
        assert (size, group) == (224, GROUP)
        exact = image_tower(Graph(model, output="image_embeds", threads=1))

        def run(pixels):
            rows = exact(pixels)
            aside = np.roll(rows, 1, axis=1)
            aside -= rows * (aside * rows).sum(axis=1, keepdims=True) / (rows**2).sum(axis=1, keepdims=True)
            aside *= np.linalg.norm(rows, axis=1, keepdims=True) / np.linalg.norm(aside, axis=1, keepdims=True)
            return np.cos(angle) * rows + np.sin(angle) * aside

        return run

    monkeypatch.setattr(openvino_backend, "image_tower", tower)


def test_rows_within_the_bound_share_the_space(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    run_with_error(monkeypatch, angle=0.01)  # cosine 0.99995
    fast, plain = load_encoder("builtin"), load_encoder("builtin", backend="onnx")
    assert (fast.backend, plain.backend) == ("openvino", "onnx")
    assert fast.fingerprint == plain.fingerprint


def test_rows_beyond_the_bound_have_a_space_of_their_own(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    run_with_error(monkeypatch, angle=0.03)  # cosine 0.99955
    fast, plain = load_encoder("builtin"), load_encoder("builtin", backend="onnx")
    assert fast.backend == "openvino" and fast.fingerprint != plain.fingerprint
    for encoder in (fast, plain):  # a model goes on with the back end that it was learned with
        state = empty_state(encoder_space(encoder), has_text=False, method="NCM")
        again = encoder_of(state, None, None)
        assert (again.backend, again.fingerprint) == (encoder.backend, encoder.fingerprint)
    assert load_encoder("builtin", like="").backend == "onnx"  # of embeddings whose origin is unknown


def test_rows_that_disagree_are_refused(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    run_with_error(monkeypatch, angle=0.1)  # cosine 0.995
    assert load_encoder("builtin").backend == "onnx"
    with pytest.raises(HyCalError, match=r"on OpenVINO disagrees .* 0\.995\d, expected at least 0\.999\. Use the back"):
        load_encoder("builtin", backend="openvino")
    status = try_out(check_files(find_encoder("builtin")))
    assert status.ready and status.backend == "onnx" and "builtin on OpenVINO disagrees" in status.detail


def test_onnx_runtime_can_be_kept(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    run_with_error(monkeypatch, angle=0.01)
    monkeypatch.setenv("HYCAL_BACKEND", "onnx")
    assert load_encoder("builtin").backend == "onnx"
    monkeypatch.setenv("HYCAL_BACKEND", "fast")
    with pytest.raises(HyCalError, match=r"HYCAL_BACKEND is 'fast'; expected 'onnx'.* or 'auto'"):
        load_encoder("builtin")


def test_without_openvino(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        run_with_error(patch, angle=0.03)
        quantised = load_encoder("builtin").fingerprint
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert load_encoder("builtin").backend == "onnx"
    with pytest.raises(HyCalError, match=r"made by builtin on OpenVINO.*pip install 'hycal\[openvino\]'.*learn the im"):
        load_encoder("builtin", like=quantised)


def test_the_commands_name_the_back_end(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    run_with_error(monkeypatch, angle=0.01)
    assert "back ends of new embeddings: builtin openvino" in run_hycal("encoders", "list").output
    assert "back end       openvino" in run_hycal("encoders", "show", "builtin").output
    assert "back end       onnx" in run_hycal("encoders", "show", "builtin", "--backend", "onnx").output
    assert "back end openvino; fingerprint" in run_hycal("doctor").output


def test_an_entry_that_cannot_use_it() -> None:
    with pytest.raises(HyCalError, match="'builtin' has no back end 'openvino'; expected one of onnx"):
        load_encoder("builtin", backend="openvino")


def test_the_import_reports_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = "try:\n    import openvino_telemetry as used\nexcept ImportError:\n    used = None\n"
    write_package(tmp_path, "openvino", tries)
    write_package(tmp_path, "openvino_telemetry", "")
    monkeypatch.syspath_prepend(tmp_path)
    for held in (False, True):
        for name in ("openvino", "openvino_telemetry"):
            monkeypatch.setitem(sys.modules, name, None)
            monkeypatch.delitem(sys.modules, name)
        if held:  # by the program around hycal, which keeps it
            import openvino_telemetry
        assert openvino_backend._runtime().used is None
        assert sys.modules["openvino_telemetry"] is (openvino_telemetry if held else None)


@needs_openvino
@pytest.mark.parametrize(("code", "told"), [("import openvino", True), ("b._runtime(); b._runtime()", False)])
def test_the_real_package_reports_to_nobody(code: str, told: bool, tmp_path: Path) -> None:
    """The plain import would tell the telemetry package, here one that takes a note."""
    write_package(tmp_path, "openvino_telemetry", f"open({str(tmp_path / 'note')!r}, 'w')")
    environment = dict(os.environ, HOME=str(tmp_path), PYTHONPATH=str(tmp_path))
    command = f"from hycal.encoders import openvino_backend as b; {code}"
    subprocess.run([sys.executable, "-c", command], env=environment, check=True, capture_output=True)
    assert (tmp_path / "note").exists() == told


def small_graph(path: Path) -> tuple[Path, np.ndarray]:
    """Write a graph of one product with 8-bit weights, as the rewrite of a wheel has them; return its weights too."""
    random = np.random.default_rng(0)
    weight = random.integers(-127, 128, (3 * SIZE * SIZE, WIDTH), dtype=np.int8)
    scale = random.uniform(0.01, 0.1, WIDTH).astype(np.float32)
    shape = np.array([0, 1, 3 * SIZE * SIZE])
    nodes = [
        helper.make_node("Cast", ["weight"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["dense"]),
        helper.make_node("Reshape", ["pixels", "shape"], ["tokens"]),
        helper.make_node("MatMul", ["tokens", "dense"], ["product"]),
        helper.make_node("Flatten", ["product"], ["image_embeds"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["n", WIDTH])],
        [
            numpy_helper.from_array(value, name)
            for name, value in {"weight": weight, "scale": scale, "shape": shape}.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    return path, weight.astype(np.float32) * scale


def quantised(rows: np.ndarray) -> np.ndarray:
    """Round each group of channels to 8 bits, with a scale of its own."""
    groups = rows.reshape(len(rows), -1, GROUP)
    scale = np.abs(groups).max(axis=2, keepdims=True) / 127
    return (np.rint(groups / scale) * scale).reshape(rows.shape)


@needs_openvino
def test_products_are_those_of_the_plain_reference(tmp_path: Path) -> None:
    path, weight = small_graph(tmp_path / "model.onnx")
    pixels = np.random.default_rng(1).standard_normal((7, 3, SIZE, SIZE)).astype(np.float32)
    rows = pixels.reshape(7, -1)
    exact = openvino_backend.image_tower(path, size=SIZE, group=0, threads=2)
    np.testing.assert_allclose(exact(pixels), rows @ weight, rtol=1e-4, atol=1e-3)
    found = openvino_backend.image_tower(path, size=SIZE, group=GROUP, threads=2)(pixels)
    errors = [np.abs(found - reference @ weight).max() for reference in (rows, quantised(rows))]
    assert min(errors) < 1e-3  # without 8-bit instructions, OpenVINO stays in float32


@needs_openvino
def test_rows_do_not_depend_on_their_neighbours(tmp_path: Path) -> None:
    path, _ = small_graph(tmp_path / "model.onnx")
    pixels = np.random.default_rng(1).standard_normal((23, 3, SIZE, SIZE)).astype(np.float32)
    tower = openvino_backend.image_tower(path, size=SIZE, group=GROUP, threads=2)
    np.testing.assert_array_equal(tower(pixels), np.concatenate([tower(image[None]) for image in pixels]))


@needs_openvino
def test_what_is_no_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(HyCalError, match="is not a graph that OpenVINO can load"):
        openvino_backend.image_tower(tmp_path / "model.onnx", size=SIZE, group=GROUP)


@needs_openvino
def test_the_real_encoder(w8) -> None:
    fast = load_encoder("clip-vit-b16-w8", threads=2)
    assert fast.backend == "openvino"
    assert fast.fingerprint in ("16ee032b1cedd2683cb661ec29a6c837", w8.fingerprint)
    assert (embed_golden(fast) * embed_golden(w8)).sum(axis=1).min() > 0.999
