"""The tokenizer of CLIP and of SigLIP 2, with the `tokenizers` package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError, load_extra

Ids = npt.NDArray[np.int64]
_END = "<|endoftext|>"


class ClipTokenizer:
    """Maps texts to rows of `context` token ids by a `tokenizer.json`: start, the text, end, then the token `padding`.

    A longer text is truncated and still ends with the end token. With the `case` "lower", the text is changed to lower
    case before anything else; CLIP's file does so itself.

    CLIP reads the embedding of a text at its first end token and attends only backwards, so the padding has no
    influence. OpenAI's code pads with 0, transformers with the end token. This class pads with the end token, because
    exported graphs may search for the position of the largest id, which is the end token.
    """

    def __init__(
        self, path: Path, *, context: int = 77, padding: str = _END, case: Literal["kept", "lower"] = "kept"
    ) -> None:
        tokenizers = load_extra("tokenizers", extra="clip", why="Encoding texts")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the Rust side raises a bare Exception
            raise HyCalError(
                f"{path} is not a tokenizer file: {error}. Expected the tokenizer.json of the model; get it again."
            ) from None
        end = self._tokenizer.token_to_id(padding)
        if end is None:
            raise HyCalError(f"{path} has no token {padding!r}; expected the tokenizer of this model.")
        if case == "lower":
            steps = [tokenizers.normalizers.Lowercase(), self._tokenizer.normalizer]
            self._tokenizer.normalizer = tokenizers.normalizers.Sequence([step for step in steps if step is not None])
        self.end: int = end
        self.context = context
        self._tokenizer.enable_truncation(max_length=context)
        self._tokenizer.enable_padding(length=context, pad_id=end, pad_token=padding)

    def encode(self, texts: Sequence[str]) -> Ids:
        """Return the (n, context) token ids."""
        if isinstance(texts, str):
            raise HyCalError(f"Expected a list of texts, got the single text {texts!r}. Pass [{texts!r}].")
        return np.array([row.ids for row in self._tokenizer.encode_batch(list(texts))], dtype=np.int64)

    def mask(self, ids: Ids) -> Ids:
        """Return the attention mask: 1 up to and including the first end token."""
        length = (ids == self.end).argmax(axis=1)
        return (np.arange(ids.shape[1]) <= length[:, None]).astype(np.int64)
