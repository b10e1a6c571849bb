"""Make the folder that Hugging Face's `datasets` saved; needs `pip install datasets`.

python tests/golden/make_dataset.py tests/golden/datasets-5.2
"""

from __future__ import annotations

import sys

import numpy as np


def main(folder: str) -> None:
    """Save six rows of two classes in two splits."""
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value

    features = Features(
        {"embedding": Sequence(Value("float32")), "label": ClassLabel(names=["tit", "owl"]), "caption": Value("string")}
    )
    rows = np.eye(6, 4, dtype=np.float32) + 0.1
    whole = {"embedding": rows, "label": [0, 1] * 3, "caption": ["a bird"] * 6}
    parts = {"train": slice(0, 4), "test": slice(4, 6)}
    DatasetDict(
        {
            split: Dataset.from_dict({name: column[part] for name, column in whole.items()}, features=features)
            for split, part in parts.items()
        }
    ).save_to_disk(folder)


if __name__ == "__main__":
    main(sys.argv[1])
