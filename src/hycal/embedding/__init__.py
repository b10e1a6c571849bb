"""From many images to a table of embeddings: safe decoding, a resumable cache, a batch pipeline."""

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
