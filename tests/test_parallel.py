"""Chunks cover every row once, with one thread or several, and memory stays bounded."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import parallel
from hycal.classifiers import HyCal
from hycal.streams import Stream, learn


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 130, 5000])
def test_every_row_once(monkeypatch, threads, rows):
    monkeypatch.setattr(parallel, "blas_threads", lambda: threads)
    seen = np.zeros(rows, int)

    def mark(chunk):
        seen[chunk] += 1

    parallel.in_chunks(mark, rows, numbers_per_row=10)
    assert (seen == 1).all()


def test_chunks_shrink_with_the_model(monkeypatch):
    monkeypatch.setattr(parallel, "blas_threads", lambda: 1)
    sizes = []
    parallel.in_chunks(
        lambda chunk: sizes.append(chunk.stop - chunk.start), 500, numbers_per_row=100, most_numbers=5000
    )
    assert max(sizes) == 50


def test_an_error_in_a_chunk_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(parallel, "blas_threads", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        parallel.in_chunks(lambda chunk: 1 // 0, 500, numbers_per_row=1)


def test_scores_do_not_depend_on_the_threads(monkeypatch):
    stream = Stream.synthetic(0, shots=[[3, 5, 1], [2, 9]], width=16, queries=300)
    classifier = learn(HyCal(), stream.steps)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(parallel, "blas_threads", lambda threads=threads: threads)
        results.append(classifier.decision_function(stream.queries))
    np.testing.assert_allclose(*results, atol=1e-4)
