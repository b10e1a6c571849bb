"""The ONNX Runtime back end: graphs, image towers and text towers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy.typing as npt

from hycal.encoders.encoder import Rows
from hycal.encoders.tokenizer import ClipTokenizer
from hycal.errors import HyCalError, load_package
from hycal.validation import Floats

IMAGES = "image_embeds"  # the output of an image tower, where a graph has several


def _runtime() -> ModuleType:
    """Import ONNX Runtime with its telemetry switched off, unless the user switched it on."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    return load_package("onnxruntime", why="Running an encoder")


class Graph:
    """An ONNX graph of which one output is an embedding.

    `model` is a file, or a serialised graph; `output` is the one to read where the graph has several, for example
    "image_embeds". `threads` of one run are by default one on every core, as ONNX Runtime has it.
    """

    def __init__(self, model: Path | bytes, *, output: str, threads: int | None = None) -> None:
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        # Waiting threads must not occupy the cores that decode the next images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if threads is not None:
            options.intra_op_num_threads = threads
        source = model if isinstance(model, bytes) else str(model)
        try:
            self._session: Any = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the errors of ONNX Runtime have no common base class
            what = "The graph" if isinstance(model, bytes) else str(model)
            raise HyCalError(
                f"{what} is not a graph that ONNX Runtime can load: {error}. Expected an encoder exported to ONNX; "
                "get the file again."
            ) from None
        outputs = [value.name for value in self._session.get_outputs()]
        self._output = output if output in outputs else outputs[0]
        self.inputs: list[str] = [value.name for value in self._session.get_inputs()]

    def run(self, **inputs: npt.NDArray[Any]) -> Rows:
        """Return the output for named inputs; inputs that the graph does not have are ignored."""
        feed = {name: inputs[name] for name in self.inputs if name in inputs}
        if len(feed) != len(self.inputs):
            raise HyCalError(f"The graph asks for the inputs {self.inputs}; hycal can give {sorted(inputs)}.")
        try:
            return self._session.run([self._output], feed)[0]
        except Exception as error:  # as above; for example inputs of another shape
            shapes = {name: value.shape for name, value in feed.items()}
            raise HyCalError(
                f"ONNX Runtime could not run the graph on {shapes}: {error}. Expected an encoder for inputs of these "
                "shapes; check the file, and the memory that is left."
            ) from None


def image_tower(graph: Graph) -> Callable[[Floats], Rows]:
    """Return an image tower; its one input may have any name."""
    return lambda pixels: graph.run(**dict.fromkeys(graph.inputs, pixels))


def text_tower(graph: Graph, tokenizer: ClipTokenizer) -> Callable[[Sequence[str]], Rows]:
    """Return a text tower from a graph and its tokenizer."""

    def tower(texts: Sequence[str]) -> Rows:
        ids = tokenizer.encode(texts)
        return graph.run(input_ids=ids, attention_mask=tokenizer.mask(ids))

    return tower
