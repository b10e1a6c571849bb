"""The torch back ends against ONNX Runtime on a small CLIP in real file formats: `make test-torch`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hycal.encoders import load_encoder
from hycal.encoders.golden import golden_images
from tests.encoders import small_clip, small_models

WRITERS = {"transformers": small_clip.write_transformers, "open_clip": small_clip.write_open_clip}
TEXTS = ["a photo of a cat", "", "Ünïcode, 12 cats!", "cat " * 200]


@pytest.fixture(scope="module", autouse=True)
def importable_torchvision():
    """Declare the operators that torchvision always refers to where its compiled part is of another build than torch.

    A package index may pair a CPU-only torch with a torchvision built for a GPU. The tests need only Python code of
    torchvision, which cannot be imported before they are declared.
    """
    torch = pytest.importorskip("torch", reason="needs torch: run `make test-torch`")
    library = None
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    yield library


@pytest.mark.filterwarnings("ignore")  # what torch and its libraries warn about is theirs
@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
@pytest.mark.parametrize("backend", list(WRITERS))
def test_agrees_with_onnx(backend: str, activation: str, tmp_path: Path) -> None:
    for module in ("torch", backend):
        pytest.importorskip(module, reason=f"needs {module}: run `make test-torch`")
    folder = WRITERS[backend](tmp_path, activation=activation)
    plain = load_encoder("clip-vit-b16", weights=folder, threads=1)
    other = load_encoder("clip-vit-b16", weights=folder, backend=backend)
    assert other.fingerprint == plain.fingerprint
    pixels = np.stack([plain.preprocess(image) for image in golden_images()])
    np.testing.assert_allclose(other.encode(pixels), plain.encode(pixels), atol=2e-5)
    np.testing.assert_allclose(other.encode_texts(TEXTS), plain.encode_texts(TEXTS), atol=2e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "writer"), [("dinov2-b", small_models.write_dinov2), ("siglip2-b16", small_models.write_siglip)]
)
def test_other_models_of_transformers(name: str, writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="needs transformers: run `make test-torch`")
    small_models.use_small_widths(monkeypatch)
    folder = writer(tmp_path)
    plain = load_encoder(name, weights=folder, threads=1)
    other = load_encoder(name, weights=folder, backend="transformers")
    assert other.has_text == plain.has_text
    pixels = np.stack([plain.preprocess(image) for image in golden_images()])
    np.testing.assert_allclose(other.encode(pixels), plain.encode(pixels), atol=2e-5)
    if plain.has_text:
        np.testing.assert_allclose(other.encode_texts(TEXTS), plain.encode_texts(TEXTS), atol=2e-5)


@pytest.mark.filterwarnings("ignore")
def test_mobileclip_as_open_clip_writes_it(tmp_path: Path) -> None:
    """The whole MobileCLIP2-B with random weights: its size is fixed."""
    open_clip = pytest.importorskip("open_clip", reason="needs open_clip: run `make test-torch`")
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    model = open_clip.create_model("MobileCLIP2-B").eval()
    for name, value in model.named_buffers():  # means and variances as after training, not zeros and ones
        if value.is_floating_point() and "running" in name:
            value.add_(0.1 * torch.rand_like(value))
    config = {"model_cfg": open_clip.get_model_config("MobileCLIP2-B"), "preprocess_cfg": {}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    save_file(
        {name: value.contiguous() for name, value in model.state_dict().items()},
        tmp_path / "open_clip_model.safetensors",
    )
    small_clip.tokenizer().save(str(tmp_path / "tokenizer.json"))
    encoder = load_encoder("mobileclip2-b", weights=tmp_path, threads=1)
    pixels = np.stack([encoder.preprocess(image) for image in golden_images()])
    with torch.inference_mode():
        expected = model.encode_image(torch.from_numpy(pixels), normalize=True).numpy()
    np.testing.assert_allclose(encoder.encode(pixels), expected, atol=5e-5)


@pytest.mark.filterwarnings("ignore")
def test_preprocessing_is_that_of_torchvision() -> None:
    pytest.importorskip("torchvision", reason="needs torchvision: run `make test-torch`")
    from PIL import Image
    from torchvision import transforms

    from hycal.encoders.preprocessing import Preprocessing

    ours = Preprocessing()
    theirs = transforms.Compose(
        [
            transforms.Resize(224, interpolation=transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(ours.mean, ours.std),
        ]
    )
    random = np.random.default_rng(0)
    for width, height in [(299, 224), (224, 267), (640, 480), (333, 501), (28, 28)]:
        image = Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
        np.testing.assert_array_equal(ours.apply(image), theirs(image).numpy())
