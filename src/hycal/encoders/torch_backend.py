"""The torch back ends, with transformers or open_clip: for research, and for a GPU.

Preprocessing and tokenizer are those of the ONNX Runtime back end; only the arithmetic differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hycal.encoders.catalog import Backend
from hycal.encoders.encoder import Rows, Towers
from hycal.encoders.files import Located
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.extras import load_extra


@dataclass(frozen=True)
class _TorchModel:
    """The towers of a model of either library, as functions on tensors, and the length of its texts."""

    image: Callable[[Any], Any]
    text: Callable[[Any], Any]
    context: int


def torch_towers(located: Located, *, backend: Backend) -> Towers:
    """Return the towers of the checkpoint in `located` on the torch library `backend`."""
    load_extra("torch", extra="torch", why=f"The back end {backend}")
    model = _LOADERS[backend](located)
    tokenizer = ClipTokenizer(located.found["tokenizer"], context=model.context)
    return Towers(
        image=lambda pixels: _run(model.image, pixels),
        text=lambda texts: _run(model.text, tokenizer.encode(texts)),
    )


def _run(tower: Callable[[Any], Any], values: Any) -> Rows:
    import torch

    with torch.inference_mode():
        result: Rows = tower(torch.from_numpy(values).to(_device())).float().cpu().numpy()
    return result


def _device() -> str:
    """Return the torch device: a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _transformers(located: Located) -> _TorchModel:
    library = load_extra("transformers", extra="torch", why="The back end transformers")
    model = library.CLIPModel.from_pretrained(str(located.folder), local_files_only=True).eval().to(_device())

    def image(pixels: Any) -> Any:
        return model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)

    def text(ids: Any) -> Any:
        return model.text_projection(model.text_model(input_ids=ids).pooler_output)

    return _TorchModel(image, text, model.config.text_config.max_position_embeddings)


def _open_clip(located: Located) -> _TorchModel:
    library = load_extra("open_clip", extra="torch", why="The back end open_clip")
    # The configuration in the folder says whether the model uses quick_gelu; the name of the architecture does not.
    model = library.create_model(f"local-dir:{located.folder}").eval().to(_device())
    return _TorchModel(model.encode_image, model.encode_text, int(model.context_length))


_LOADERS: dict[str, Callable[[Located], _TorchModel]] = {"transformers": _transformers, "open_clip": _open_clip}
