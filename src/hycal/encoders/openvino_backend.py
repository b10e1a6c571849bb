"""The OpenVINO back end: an image tower with 8-bit weights whose activations are quantised in small groups.

The activations of each token are quantised to 8 bits in groups of neighbouring channels, each with a scale of its own.
A few channels of a transformer are far larger than the others; they spoil their own group and no other. The products
are then of 8-bit integers, which processors with VNNI or AMX multiply several times faster than floats.

Each image is an inference of its own, and several run at a time, one on each stream of cores. So a row cannot depend
on the other images of its batch, and no core waits for the slowest part of another image.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from hycal.encoders.encoder import Rows
from hycal.errors import HyCalError, load_extra
from hycal.validation import Floats

_TELEMETRY = "openvino_telemetry"
_MOST_STREAMS = 4  # more cores than that share a stream, so that one image alone does not wait for a single core


def _runtime() -> ModuleType:
    """Import OpenVINO without its telemetry package, which would report the import to its maker.

    While None stands for a package, Python refuses to import it, and OpenVINO takes an empty stand-in.
    """
    modules = cast(dict[str, Any], sys.modules)
    held = modules.get(_TELEMETRY)
    modules[_TELEMETRY] = None
    try:
        return load_extra("openvino", extra="openvino", why="The back end openvino")
    finally:
        if held is not None:  # a program around hycal imported it, and may need it
            modules[_TELEMETRY] = held


def image_tower(model: Path, *, size: int, group: int, threads: int | None = None) -> Callable[[Floats], Rows]:
    """Return an image tower of an ONNX graph.

    The graph has one input of pixels, a square of side `size`, and its first output is the embedding. `group` is the
    number of channels that share a scale when activations are quantised; 0 for float32 arithmetic. `threads` for all
    images are by default one on every core.
    """
    runtime = _runtime()
    cores = threads or os.cpu_count() or 1
    streams = min(cores, _MOST_STREAMS)
    options = {
        "NUM_STREAMS": streams,
        "INFERENCE_NUM_THREADS": cores,
        "ENABLE_CPU_PINNING": False,  # threads that decode images use the same cores
        "INFERENCE_PRECISION_HINT": "f32",  # else bfloat16 where a processor has it, whose rows differ more
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": group,
    }
    try:
        core = runtime.Core()
        graph = core.read_model(str(model))
        graph.reshape([1, 3, size, size])
        queue = runtime.AsyncInferQueue(core.compile_model(graph, "CPU", options), 2 * streams)
    except Exception as error:  # the errors of OpenVINO have no common base class
        raise HyCalError(
            f"{model} is not a graph that OpenVINO can load: {error}. Expected an encoder exported to ONNX; get the "
            "file again, or use the back end onnx."
        ) from None
    return _Tower(queue)


class _Tower:
    """The function of an image tower; threads may share it, and wait for each other."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._turn = threading.Lock()
        queue.set_callback(_keep_row)

    def __call__(self, pixels: Floats) -> Rows:
        rows: list[Any] = [None] * len(pixels)
        with self._turn:
            try:
                for number, image in enumerate(pixels):
                    self._queue.start_async({0: image[None]}, (rows, number))
                self._queue.wait_all()
            except Exception as error:  # as above
                raise HyCalError(
                    f"OpenVINO could not run the graph on an image of shape {pixels.shape[1:]}: {error}. Check the "
                    "memory that is left, or use the back end onnx."
                ) from None
        return np.stack(rows)


def _keep_row(request: Any, place: tuple[list[Any], int]) -> None:
    rows, number = place
    rows[number] = request.get_output_tensor(0).data[0].copy()
