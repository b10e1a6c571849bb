"""The torch back ends, with transformers or open_clip: for research, and for a GPU.

Preprocessing and tokenizer are those of the ONNX Runtime back end; only the arithmetic differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hycal.encoders.catalog import Backend
from hycal.encoders.checkpoint_reader import read_text_shape
from hycal.encoders.encoder import Rows, Towers
from hycal.encoders.files import Located
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.errors import load_extra
from hycal.validation import Floats


@dataclass(frozen=True)
class _TorchModel:
    """The towers of a model of either library, as functions on tensors."""

    image: Callable[[Any], Any]
    text: Callable[[Any], Any]


def torch_towers(located: Located, *, backend: Backend) -> Towers:
    """Return the towers of the checkpoint in `located` on the torch library `backend`."""
    load_extra("torch", extra="torch", why=f"The back end {backend}")
    model = _LOADERS[backend](located)

    def image(pixels: Floats) -> Rows:
        return _run(model.image, pixels)

    shape = read_text_shape(located.found["config"], located.found["weights"])
    if shape is None or "tokenizer" not in located.found:
        return Towers(image, None)
    tokenizer = ClipTokenizer(located.found["tokenizer"], context=shape.context, padding=shape.padding, case=shape.case)
    return Towers(image, lambda texts: _run(model.text, tokenizer.encode(texts)))


def _run(tower: Callable[[Any], Any], values: Any) -> Rows:
    import torch

    with torch.inference_mode():
        return tower(torch.from_numpy(values).to(_device())).float().cpu().numpy()


def _device() -> str:
    """Return the torch device: a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _transformers(located: Located) -> _TorchModel:
    library = load_extra("transformers", extra="torch", why="The back end transformers")
    model = library.AutoModel.from_pretrained(str(located.folder), local_files_only=True).eval().to(_device())

    def image(pixels: Any) -> Any:
        pooled = getattr(model, "vision_model", model)(pixel_values=pixels).pooler_output
        return model.visual_projection(pooled) if hasattr(model, "visual_projection") else pooled

    def text(ids: Any) -> Any:
        pooled = model.text_model(input_ids=ids).pooler_output
        return model.text_projection(pooled) if hasattr(model, "text_projection") else pooled

    return _TorchModel(image, text)


def _open_clip(located: Located) -> _TorchModel:
    library = load_extra("open_clip", extra="torch", why="The back end open_clip")
    # The configuration in the folder says whether the model uses quick_gelu; the name of the architecture does not.
    model = library.create_model(f"local-dir:{located.folder}").eval().to(_device())
    return _TorchModel(model.encode_image, model.encode_text)


_LOADERS: dict[str, Callable[[Located], _TorchModel]] = {"transformers": _transformers, "open_clip": _open_clip}
