"""The model as one ONNX graph: other programs answer without hycal, and with the same labels."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

from hycal import HierarchicalHyCal
from hycal.data import load_xd8
from hycal.export.onnx_head import export_onnx

texture = load_xd8()["texture"]
names = np.array(texture.class_names)
clf = HierarchicalHyCal().fit(texture.train_x, names[texture.train_y])
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "texture.onnx"
    export_onnx(clf, path)
    session = onnxruntime.InferenceSession(str(path))
    (labels,) = session.run(["label"], {"embeddings": texture.test_x})
print("the same answers:", bool(np.all(labels == clf.predict(texture.test_x))))
