"""Labelled images and embeddings: readers of folders and manifests, published data sets, the embeddings in the package.

`project`, `bench`, `serve` and `commands` may import it; it imports `embedding`, `encoders`, `storage` and below.
It never uses a classifier, and leaves decoding and encoding to `embedding`.
"""

from hycal.data.bundled import load_xd8, xd8_encoders, xd8_provenance
from hycal.data.catalog import DataSetSpec, find_dataset, list_datasets, prompts
from hycal.data.check import DataReport, check_dataset
from hycal.data.embedded import EmbeddedDomain
from hycal.data.layouts import read_dataset
from hycal.data.readers import read_csv, read_folder, read_jsonl, read_npz
from hycal.data.samples import ImageSet, Sample

__all__ = [
    "DataReport",
    "DataSetSpec",
    "EmbeddedDomain",
    "ImageSet",
    "Sample",
    "check_dataset",
    "find_dataset",
    "list_datasets",
    "load_xd8",
    "prompts",
    "read_csv",
    "read_dataset",
    "read_folder",
    "read_jsonl",
    "read_npz",
    "xd8_encoders",
    "xd8_provenance",
]
