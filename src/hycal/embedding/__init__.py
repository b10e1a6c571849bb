"""From many images to rows of embeddings: image sources, safe decoding, the pipeline, the cache, tables in files.

`data`, `project`, `bench`, `serve` and `commands` may import it; it imports `encoders`, `storage` and below.
It never knows a label or a classifier, and never chooses an encoder.
"""

from hycal.embedding.cache import EmbeddingCache
from hycal.embedding.pipeline import embed
from hycal.embedding.shards import embed_sharded
from hycal.embedding.sources import ImageBytes, ImageFile, ImageRow, ImageSource
from hycal.embedding.store import Embedded, Skipped
from hycal.embedding.table import EmbeddingTable, is_table, read_table, write_table

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
