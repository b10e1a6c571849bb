"""CLIP on torch, by transformers or open_clip: for research, and for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from hycal.encoders.extras import load_extra
from hycal.encoders.files import Located
from hycal.encoders.preprocessing import Preprocessing
from hycal.encoders.table import Backend, EncoderSpec
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.validation import Floats, unit_rows


@dataclass(frozen=True)
class Towers:
    """A model of either library: tensors in, tensors out."""

    image: Callable[[Any], Any]
    text: Callable[[Any], Any]
    context: int


class TorchEncoder:
    """An encoder on torch; implements `hycal.encoders.protocol.Encoder`.

    Preprocessing and tokenizer are those of the ONNX back end, so that only the arithmetic differs.
    """

    has_text = True

    def __init__(
        self,
        *,
        name: str,
        dimension: int,
        fingerprint: str,
        preprocessing: Preprocessing,
        towers: Towers,
        tokenizer: ClipTokenizer,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.fingerprint = fingerprint
        self.preprocessing = preprocessing
        self._towers = towers
        self._tokenizer = tokenizer

    def preprocess(self, image: Image.Image) -> Floats:
        """Return the (3, height, width) input of one image."""
        return self.preprocessing.apply(image)

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) unit embeddings of (n, 3, height, width) inputs."""
        return self._run(self._towers.image, np.ascontiguousarray(batch, dtype=np.float32))

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) unit embeddings of texts."""
        return self._run(self._towers.text, self._tokenizer.encode(texts))

    def _run(self, tower: Callable[[Any], Any], values: Any) -> Floats:
        import torch

        if not len(values):
            return np.empty((0, self.dimension), dtype=np.float32)
        with torch.inference_mode():
            result = tower(torch.from_numpy(values).to(device()))
        return unit_rows(result.float().cpu().numpy())


def device() -> str:
    """Return the torch device: a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def load_torch_encoder(spec: EncoderSpec, located: Located, *, backend: Backend, fingerprint: str) -> TorchEncoder:
    """Return `spec` on the torch library `backend`, from the checkpoint in `located`."""
    load_extra("torch", extra="torch", why=f"The back end {backend}")
    towers = _LOADERS[backend](located)
    return TorchEncoder(
        name=spec.name,
        dimension=spec.dimension,
        fingerprint=fingerprint,
        preprocessing=spec.preprocessing,
        towers=towers,
        tokenizer=ClipTokenizer(located.found["tokenizer"], context=towers.context),
    )


def _transformers(located: Located) -> Towers:
    library = load_extra("transformers", extra="torch", why="The back end transformers")
    model = library.CLIPModel.from_pretrained(str(located.folder), local_files_only=True).eval().to(device())

    def image(pixels: Any) -> Any:
        return model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)

    def text(ids: Any) -> Any:
        return model.text_projection(model.text_model(input_ids=ids).pooler_output)

    return Towers(image, text, model.config.text_config.max_position_embeddings)


def _open_clip(located: Located) -> Towers:
    library = load_extra("open_clip", extra="torch", why="The back end open_clip")
    # The configuration in the folder says quick_gelu or not; a model named by its architecture alone would guess.
    model = library.create_model(f"local-dir:{located.folder}").eval().to(device())
    return Towers(model.encode_image, model.encode_text, int(model.context_length))


_LOADERS: dict[str, Callable[[Located], Towers]] = {"transformers": _transformers, "open_clip": _open_clip}
