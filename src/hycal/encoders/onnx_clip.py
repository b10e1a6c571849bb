"""An encoder that runs on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from hycal.encoders.extras import load_extra
from hycal.encoders.preprocessing import Preprocessing
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.errors import HyCalError
from hycal.validation import Floats, unit_rows

_TEXTS_AT_ONCE = 64


class Tower:
    """One ONNX graph with one output that is an embedding.

    Parameters
    ----------
    model : Path or bytes
        A file, or a serialised graph.
    output : str
        The output to read where the graph has several, for example "image_embeds".
    threads : int or None
        Threads for one run; None leaves it to ONNX Runtime, which takes every core.
    """

    def __init__(self, model: Path | bytes, *, output: str, threads: int | None = None) -> None:
        runtime = load_extra("onnxruntime", extra="clip", why="Running an encoder")
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        source = model if isinstance(model, bytes) else str(model)
        try:
            self._session: Any = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's errors share no base class of their own
            what = "The graph" if isinstance(model, bytes) else str(model)
            raise HyCalError(
                f"{what} is not a graph that ONNX Runtime can load: {error}. Expected an encoder exported to ONNX; "
                "get the file again."
            ) from None
        outputs = [value.name for value in self._session.get_outputs()]
        self._output = output if output in outputs else outputs[0]
        self.inputs: list[str] = [value.name for value in self._session.get_inputs()]

    def run(self, **inputs: npt.NDArray[Any]) -> Floats:
        """Return the unit rows for named inputs, of which the graph takes those it knows."""
        feed = {name: inputs[name] for name in self.inputs if name in inputs}
        if len(feed) != len(self.inputs):
            raise HyCalError(f"The graph asks for the inputs {self.inputs}; hycal can give {sorted(inputs)}.")
        try:
            result: npt.NDArray[Any] = self._session.run([self._output], feed)[0]
        except Exception as error:  # as above; a graph for inputs of another shape ends here
            shapes = {name: value.shape for name, value in feed.items()}
            raise HyCalError(
                f"ONNX Runtime could not run the graph on {shapes}: {error}. Expected an encoder for inputs of these "
                "shapes; check the file, and the memory that is left."
            ) from None
        if result.ndim != 2 or not np.isfinite(result).all() or not result.any(axis=1).all():
            raise HyCalError(
                f"The output {self._output!r} is not a batch of finite, non-zero vectors (shape {result.shape}). "
                "Expected the projected embedding of a CLIP tower; check the file."
            )
        return unit_rows(result)


@dataclass(frozen=True)
class TextTower:
    """A text graph and the tokenizer that feeds it."""

    tower: Tower
    tokenizer: ClipTokenizer

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) unit embeddings."""
        ids = self.tokenizer.encode(texts)
        mask = self.tokenizer.mask(ids)
        parts = [
            self.tower.run(input_ids=ids[at : at + _TEXTS_AT_ONCE], attention_mask=mask[at : at + _TEXTS_AT_ONCE])
            for at in range(0, len(ids), _TEXTS_AT_ONCE)
        ]
        return np.concatenate(parts)


class OnnxEncoder:
    """An encoder on ONNX Runtime; implements `hycal.encoders.protocol.Encoder`.

    Parameters
    ----------
    name : str
    dimension : int
    fingerprint : str
    preprocessing : Preprocessing
    image : Tower
    text : TextTower or None
    no_text : str
        What to say when texts are asked for and there is no text tower.
    """

    def __init__(
        self,
        *,
        name: str,
        dimension: int,
        fingerprint: str,
        preprocessing: Preprocessing,
        image: Tower,
        text: TextTower | None,
        no_text: str,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.fingerprint = fingerprint
        self.preprocessing = preprocessing
        self.has_text = text is not None
        self._image = image
        self._text = text
        self._no_text = no_text

    def preprocess(self, image: Image.Image) -> Floats:
        """Return the (3, height, width) input of one image."""
        return self.preprocessing.apply(image)

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) unit embeddings of (n, 3, height, width) inputs."""
        side = self.preprocessing.size
        if batch.ndim != 4 or batch.shape[1:] != (3, side, side):
            raise HyCalError(
                f"{self.name} got a batch of shape {batch.shape}; expected (n, 3, {side}, {side}). "
                "Stack the results of `preprocess`."
            )
        if not len(batch):
            return np.empty((0, self.dimension), dtype=np.float32)
        inputs = dict.fromkeys(self._image.inputs, np.ascontiguousarray(batch, dtype=np.float32))
        return self._checked(self._image.run(**inputs))

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) unit embeddings of texts, or raise HyCalError saying which files are missing."""
        if self._text is None:
            raise HyCalError(self._no_text)
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return self._checked(self._text.encode(texts))

    def _checked(self, rows: Floats) -> Floats:
        if rows.shape[1] != self.dimension:
            raise HyCalError(
                f"{self.name} gave {rows.shape[1]}-dimensional embeddings; expected {self.dimension}. "
                "The weights are those of another model."
            )
        return rows
