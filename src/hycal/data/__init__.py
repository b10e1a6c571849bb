"""Where labelled images and embeddings come from: folders, manifests, published data sets."""

from hycal.data.bundled import EmbeddedDomain, load_xd8, xd8_provenance
from hycal.data.catalog import DataSetSpec, find_dataset, list_datasets, prompts
from hycal.data.check import DataReport, check_dataset
from hycal.data.folders import read_folder
from hycal.data.layouts import read_dataset
from hycal.data.manifests import read_csv, read_jsonl
from hycal.data.npz import read_npz
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
    "xd8_provenance",
]
