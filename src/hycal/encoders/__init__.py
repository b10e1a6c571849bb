"""From images and texts to unit embeddings."""

from hycal.encoders.catalog import EncoderSpec, list_encoders
from hycal.encoders.fingerprint import check_same_space
from hycal.encoders.loading import load_encoder
from hycal.encoders.protocol import Encoder

__all__ = ["Encoder", "EncoderSpec", "check_same_space", "list_encoders", "load_encoder"]
