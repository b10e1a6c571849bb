"""From many images to rows of embeddings: image sources, safe decoding, the pipeline, the cache, tables in files.

`data`, `project`, `bench`, `serve` and `commands` may import it; it imports `encoders`, `storage` and below.
It never knows a label or a classifier, and never chooses an encoder.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hycal.embedding.pipeline import embed
from hycal.embedding.sources import ImageBytes, ImageFile, ImageRow, ImageSource
from hycal.embedding.store import Embedded, Skipped

if TYPE_CHECKING:
    from hycal.embedding.cache import EmbeddingCache
    from hycal.embedding.shards import embed_sharded
    from hycal.embedding.table import EmbeddingTable, is_table, read_table, write_table

_AT_USE = {
    "EmbeddingCache": "cache",
    "EmbeddingTable": "table",
    "embed_sharded": "shards",
    "is_table": "table",
    "read_table": "table",
    "write_table": "table",
}


def __getattr__(name: str) -> Any:
    """Import cache, shards and tables at first use: the answer for one image needs none of them."""
    if name not in _AT_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_AT_USE[name]}"), name)


__all__ = [
    "Embedded",
    "EmbeddingCache",
    "EmbeddingTable",
    "ImageBytes",
    "ImageFile",
    "ImageRow",
    "ImageSource",
    "Skipped",
    "embed",
    "embed_sharded",
    "is_table",
    "read_table",
    "write_table",
]
