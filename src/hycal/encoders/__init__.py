"""From images and texts to unit embeddings: the table of encoders, their files, and the back ends that run them.

`embedding`, `export` and every room above them may import it; it imports `validation` and `errors` only.
It never reads an image file, never keeps an embedding, and never knows a class or a classifier.
"""

from hycal.encoders.catalog import EncoderSpec, list_encoders
from hycal.encoders.encoder import CombinedEncoder, Encoder
from hycal.encoders.loader import load_encoder

__all__ = ["CombinedEncoder", "Encoder", "EncoderSpec", "list_encoders", "load_encoder"]
