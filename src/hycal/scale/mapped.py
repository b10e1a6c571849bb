"""The nearest of very many class means, from the file of a sealed model: the file is mapped, not held in memory."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.algebra.covariance import directions
from hycal.algebra.softmax import log_sum_exp
from hycal.errors import HyCalError
from hycal.storage import model_file
from hycal.validation import Doubles, Floats, Label, check_queries

_AT_ONCE = 8192  # classes


@dataclass(frozen=True, eq=False)
class BestClasses:
    """The best classes of queries, best first: labels, scores and probabilities, each of shape (n, top)."""

    labels: list[list[Label]]
    scores: Doubles
    probabilities: Doubles


class MappedMeans:
    """The class means of a sealed NCM model in a file.

    Memory is that of the labels, and of 8,192 means and their scores at a time; the pages of the file are given back
    once they are used. Opening reads the whole file once, to compare its checksums.

    Parameters
    ----------
    path : path
        A file that `save` wrote of a sealed NCM.

    Examples
    --------
    >>> import tempfile
    >>> from hycal import NCM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).seal().save(f"{folder}/model")
    ...     MappedMeans(f"{folder}/model").best([[0.9, 0.1]]).labels
    [['a']]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        content = model_file.read_mapped(path)
        manifest, means = content.manifest, content.tensors.get("sealed.means")
        if manifest.get("method") != "NCM" or "sealed" not in manifest or means is None or means.ndim != 2:
            raise HyCalError(f"{path} is not a sealed NCM model; only means alone can be scored from a mapped file.")
        self.labels: list[Label] = manifest["labels"]
        self._means, self._metric = means, manifest["parameters"]["metric"]
        self._temperature = float(content.tensors["sealed.number.calibration"][0])
        self._samples = int(content.tensors["counts"].sum())
        if len(self.labels) != len(means):
            raise HyCalError(
                f"{path} has {len(self.labels):,} labels and {len(means):,} means. Restore it from a copy."
            )

    def best(self, X: npt.ArrayLike, *, top: int = 1) -> BestClasses:
        """Return the `top` classes of each query; scores and probabilities are those of the loaded model."""
        queries = check_queries(X, width=self._means.shape[1], owner="MappedMeans")
        C, n = len(self._means), len(queries)
        scores, columns = np.full((n, 0), -np.inf), np.zeros((n, 0), np.intp)
        total = np.full(n, -np.inf)
        for start in range(0, C, _AT_ONCE):
            part = self._scores(queries, start)
            total = np.logaddexp(total, log_sum_exp(part / self._temperature))
            scores = np.concatenate([scores, part], axis=1)
            columns = np.concatenate(
                [columns, np.broadcast_to(np.arange(start, start + part.shape[1]), part.shape)], axis=1
            )
            order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
            scores, columns = (np.take_along_axis(found, order, axis=1) for found in (scores, columns))
        floor = 1.0 / (2.0 * (self._samples + 1.0))
        chances = (1.0 - floor) * np.exp(scores / self._temperature - total[:, None]) + floor / C
        return BestClasses([[self.labels[column] for column in row] for row in columns.tolist()], scores, chances)

    def _scores(self, queries: Floats, start: int) -> Doubles:
        """Return the scores of the classes from `start` on, (n, at most 8,192)."""
        means = self._means[start : start + _AT_ONCE].astype(np.float64)
        _give_back(self._means)
        if self._metric == "cosine":
            return queries @ directions(means).T
        return 2.0 * queries @ means.T - np.sum(means**2, axis=1)


def _give_back(array: npt.NDArray[np.generic]) -> None:
    """Let the system take the pages of a mapped file; they are read again at need."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
