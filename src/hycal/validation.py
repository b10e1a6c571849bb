"""From what users pass to what the algebra needs: unit float32 rows, plain labels, unit text vectors."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError

Label: TypeAlias = str | int
Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]

_FLOATS = [np.float64, np.float32, np.float16]
_ROWS_AT_ONCE = 16384
_UNIT = 1e-6  # squared lengths that differ from 1 by rounding alone
_ORDINARY = (1e-6, 1e6)  # squared lengths that float32 handles with all its digits
_TEXT_LENGTH_TOLERANCE = 1e-2  # float16 text embeddings are unit to about 1e-3


def unit_rows(rows: npt.NDArray[Any]) -> Floats:
    """Scale every row to length one, computing in float64, so that statistics lose no digits.

    Dividing by the largest entry first keeps rows of 1e300 or 1e-300 from overflowing on the way.
    """
    out = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE].astype(np.float64)
        largest = np.abs(part).max(axis=1, keepdims=True)
        empty = np.flatnonzero(largest == 0)
        if empty.size:
            raise _no_direction(start + int(empty[0]))
        part /= largest
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        out[start : start + _ROWS_AT_ONCE] = part
    return out


def _no_direction(row: int) -> HyCalError:
    return HyCalError(f"Row {row} of X is all zeros and has no direction. Drop it, or check the encoder that made it.")


def unit_queries(rows: npt.NDArray[Any]) -> Floats:
    """Scale every row to length one, in float32 where the rows are of that precision and of ordinary length."""
    if rows.dtype != np.float64:
        rows = rows.astype(np.float32, copy=False)
        squares = np.einsum("nd,nd->n", rows, rows)
        if np.abs(squares - 1.0).max() < _UNIT:
            return rows
        if squares.min() > _ORDINARY[0] and squares.max() < _ORDINARY[1]:
            return rows * (1.0 / np.sqrt(squares))[:, None]
    return unit_rows(rows)


def view_slices(views: Sequence[int]) -> list[slice]:
    """Return the columns of each view in a row that has them side by side.

    >>> view_slices((512, 384))
    [slice(0, 512, None), slice(512, 896, None)]
    """
    ends = np.cumsum(views).tolist()
    return [slice(end - width, end) for width, end in zip(views, ends, strict=True)]


def unit_views(
    rows: npt.NDArray[Any], views: Sequence[int] | None, scale: Callable[[npt.NDArray[Any]], Floats] = unit_rows
) -> Floats:
    """Scale the part of each view of every row to length one; without views, every row.

    A part that is all zeros is a view that the row does not have; it stays. A row must have one view at least.
    """
    if views is None:
        return scale(rows)
    parts = view_slices(views)
    present = np.stack([rows[:, part].any(axis=1) for part in parts])
    empty = np.flatnonzero(~present.any(axis=0))
    if empty.size:
        raise _no_direction(int(empty[0]))
    out = np.zeros(rows.shape, np.float32)
    for part, has in zip(parts, present, strict=True):
        if has.all():
            out[:, part] = scale(rows[:, part])
        elif has.any():
            out[has, part] = scale(rows[has, part])
    return out


def as_numpy(array: Any) -> Any:
    """Return an array of another library, on any device, as one of NumPy; everything else as it is.

    torch, JAX, CuPy and all that follow the array API hand over their memory by DLPack. What they must do before, each
    does itself: let go of gradients, come from a GPU, widen numbers that NumPy does not know.
    """
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return array
    for step in ("detach", "cpu"):  # torch
        array = getattr(array, step, lambda same=array: same)()
    if str(array.dtype).endswith("bfloat16"):
        array = array.float() if hasattr(array, "float") else array.astype("float32")
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError):  # another device, or a type that only the library converts
        return np.asarray(array)


def check_embeddings(X: npt.ArrayLike, *, width: int | None, owner: str) -> npt.NDArray[Any]:
    """Return `X` as a matrix of finite floats, or say what is wrong with it.

    `width` is the one already learned, None accepts any; `owner` is who asks, for the message.
    """
    array = X if _is_sound(X) else _checked(as_numpy(X), owner)
    if width is not None and array.shape[1] != width:
        raise HyCalError(
            f"X has {array.shape[1]} features, but {owner} is expecting {width} features as input: "
            f"it was learned on {width}-dimensional embeddings. Encode these images with the same encoder."
        )
    return array


def _is_sound(X: npt.ArrayLike) -> TypeGuard[npt.NDArray[Any]]:
    """Whether `X` is what `_checked` would return as it is: a query alone costs less than asking scikit-learn."""
    return type(X) is np.ndarray and X.dtype in _FLOATS and X.ndim == 2 and X.size > 0 and bool(np.isfinite(X).all())


def _checked(X: npt.ArrayLike, owner: str) -> npt.NDArray[Any]:
    from sklearn.utils import check_array  # late: encoders and commands use this module and not scikit-learn

    try:
        return check_array(X, dtype=_FLOATS, estimator=owner, input_name="X")
    except ValueError as error:
        raise HyCalError(f"{error} Pass finite embeddings of shape (n, d), one row per image.") from None


def check_samples(X: npt.ArrayLike, *, width: int | None, owner: str, views: Sequence[int] | None = None) -> Floats:
    """Return embeddings to learn as unit rows, or rows of unit views, or say what is wrong with them."""
    return unit_views(check_embeddings(X, width=width, owner=owner), views)


def check_queries(X: npt.ArrayLike, *, width: int, owner: str, views: Sequence[int] | None = None) -> Floats:
    """Return embeddings to classify as unit rows, or rows of unit views, or say what is wrong with them."""
    return unit_views(check_embeddings(X, width=width, owner=owner), views, unit_queries)


def check_labels(y: object, *, rows: int) -> list[Label]:
    """Return one plain str or int per row, or say what is wrong."""
    if y is None:
        raise HyCalError("This classifier requires y to be passed, but the target y is None. Pass one label per row.")
    array = as_numpy(y)
    if not (type(array) is np.ndarray and array.ndim == 1):
        array = _one_column(array, rows)
    if len(array) != rows:
        raise HyCalError(f"X has {rows} rows but y has {len(array)} labels; expected one label per row.")
    labels = [check_label(label) for label in array.tolist()]
    check_one_kind(labels)
    return labels


def _one_column(y: Any, rows: int) -> npt.NDArray[Any]:
    from sklearn.utils import column_or_1d  # late: it takes 130 MB

    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise HyCalError(f"{error} Expected one label per row of X, shape ({rows},).") from None


def check_expected(labels: Iterable[Label], expected: Iterable[object] | None) -> None:
    """Refuse labels that are not among those that were expected; None expects any."""
    known = None if expected is None else {check_label(label) for label in as_numpy(expected)}
    for label in labels:
        if known is not None and label not in known:
            raise HyCalError(f"y has the label {label!r}, which is not in classes. Add it there, or leave classes out.")


def check_label(label: object) -> Label:
    """Return `label` as a plain str or int, or say what is wrong with it."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        label = int(label)  # what int labels become in a CSV file or a float array
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise HyCalError(
            f"Unknown label type: {label!r} is a {type(label).__name__}; a class label is a str or an int. "
            "Convert y, for example y.astype(str)."
        )
    if isinstance(label, int) and not -(2**63) <= label < 2**63:
        raise HyCalError(f"Label {label} does not fit 64 bits. Use a smaller int, or a str.")
    if isinstance(label, str) and ("\0" in label or not _is_unicode(label)):
        raise HyCalError(f"Label {label!r} holds a NUL or half a surrogate pair, which no file can store. Rename it.")
    return label


def normal_name(text: str) -> str:
    r"""Return a name in composed form (NFC): names of the same characters are equal, however they were typed.

    >>> normal_name("cafe\u0301") == "caf\xe9"
    True
    """
    return unicodedata.normalize("NFC", text)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_one_kind(labels: Iterable[Label]) -> None:
    """Refuse str and int labels side by side: they cannot be sorted, nor stored in one array."""
    examples: dict[type, Label] = {}
    for label in labels:
        examples.setdefault(type(label), label)
    if len(examples) > 1:
        raise HyCalError(
            f"Labels mix str ({examples[str]!r}) and int ({examples[int]!r}); expected one kind in a model. "
            "Convert all of them to str."
        )


def check_text(
    text: Mapping[Any, npt.ArrayLike] | None, *, width: int | None, views: Sequence[int] | None = None
) -> dict[Label, Floats]:
    """Return unit float32 text vectors by label, or say which one is wrong; no width means that of the first.

    With views a text is as wide as a row; the parts of views that have no text are zeros.
    """
    if not text:
        return {}
    labels = [check_label(label) for label in text]
    vectors = [np.asarray(as_numpy(vector), dtype=np.float64) for vector in text.values()]
    width = width or vectors[0].size
    for label, vector in zip(labels, vectors, strict=True):
        if vector.shape != (width,):
            raise HyCalError(
                f"The text embedding of {label!r} has shape {vector.shape}; expected ({width},), the width of X. "
                "Image and text must come from the same model."
            )
    stacked = np.stack(vectors)
    parts = [slice(None)] if views is None else view_slices(views)
    lengths = np.stack([np.linalg.norm(stacked[:, part], axis=1) for part in parts])
    near = np.abs(lengths - 1.0) <= _TEXT_LENGTH_TOLERANCE  # NaN is not near
    wrong = np.flatnonzero(~near.any(axis=0) | ~(near | (lengths == 0.0)).all(axis=0))
    if wrong.size:
        found = ", ".join(f"{length:.4g}" for length in lengths[:, wrong[0]])
        expected = "a unit vector" if views is None else "unit vectors of views, or zeros for a view without text"
        raise HyCalError(
            f"The text embedding of {labels[wrong[0]]!r} has length {found}; expected {expected}. "
            "Divide it by its norm, and check that it is finite."
        )
    return dict(zip(labels, unit_views(stacked, views), strict=True))


@dataclass(frozen=True)
class ModelKind:
    """What two models must have in common to be merged."""

    method: str
    width: int | None
    encoder: str | None
    encoder_name: str = ""
    views: tuple[int, ...] | None = None

    def space(self, *, named: bool) -> str:
        """Return the space of its embeddings in words; an encoder that is `named` without its fingerprint."""
        shown = (self.encoder_name,) if named else (self.encoder_name, self.encoder)
        encoder = " ".join(filter(None, shown)) or "not named"
        width = self.width if self.views is None else " + ".join(map(str, self.views))
        return f"{width} dimensions (encoder: {encoder})"


def check_mergeable(mine: ModelKind, theirs: ModelKind) -> None:
    """Refuse to merge models of two methods, widths or encoders."""
    if mine.method != theirs.method:
        raise HyCalError(
            f"Cannot merge a {theirs.method} model into a {mine.method} model; expected the same method. Nothing was "
            "changed."
        )
    if theirs.width is None:
        raise HyCalError("Cannot merge: the other model has learned nothing yet. Fit it first. Nothing was changed.")
    apart = (mine.width, mine.views) != (theirs.width, theirs.views)
    if apart or (None not in (mine.encoder, theirs.encoder) and mine.encoder != theirs.encoder):
        named = "" not in (mine.encoder_name, theirs.encoder_name) and mine.encoder_name != theirs.encoder_name
        raise HyCalError(
            f"Cannot merge: this model has {mine.space(named=named)}, the other {theirs.space(named=named)}. Their "
            "embeddings cannot be compared; learn the images of one again with the encoder of the other. Nothing was "
            "changed."
        )
