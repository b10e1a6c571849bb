"""Writes the golden model of the present format version. Run once per version; never overwrite an older one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hycal import HyCal
from hycal.storage.model_file import VERSION
from hycal.testing.streams import Stream, learn


def main() -> None:
    path = Path(__file__).parent / f"model-v{VERSION}.safetensors"
    if path.exists():
        raise SystemExit(f"{path} exists: a golden file is written once")
    stream = Stream.synthetic(7, shots=[[3, 1, 12], [5, 2]], width=8)
    model = learn(HyCal(alpha=4, beta=2), stream.map(lambda s: s.relabelled(lambda label: f"class {label}")).steps)
    model.encoder_ = "sha256:0123"
    model = model.seal()  # version 3 has sealed models
    model.save(path)
    queries = np.round(stream.queries, 6)
    expected = {
        "parameters": model.get_params(),
        "classes": model.classes_.tolist(),
        "counts": model.counts_.tolist(),
        "domains": model.domains_.tolist(),
        "encoder": model.encoder_,
        "queries": queries.tolist(),
        "scores": np.round(model.class_scores(queries).astype(float), 6).tolist(),
    }
    path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
