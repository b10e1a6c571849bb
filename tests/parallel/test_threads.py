"""Chunks cover every row once, with one thread or several, and memory stays bounded."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading

import numpy as np
import pytest

from hycal.classifiers import HyCal
from hycal.parallel import threads
from hycal.testing.streams import Stream, learn


@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 130, 5000])
def test_every_row_once(monkeypatch, cores, rows):
    monkeypatch.setattr(threads, "blas_threads", lambda: cores)
    seen = np.zeros(rows, int)

    def mark(chunk):
        seen[chunk] += 1

    threads.run_in_chunks(mark, rows, numbers_per_row=10)
    assert (seen == 1).all()


def test_chunks_shrink_with_the_model(monkeypatch):
    monkeypatch.setattr(threads, "blas_threads", lambda: 1)
    sizes = []
    threads.run_in_chunks(
        lambda chunk: sizes.append(chunk.stop - chunk.start), 500, numbers_per_row=100, most_numbers=5000
    )
    assert max(sizes) == 50


def test_an_error_in_a_chunk_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "blas_threads", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        threads.run_in_chunks(lambda chunk: 1 // 0, 500, numbers_per_row=1)


def test_callers_that_overlap_leave_the_threads_of_blas_as_they_were():
    before = threads.blas_threads()

    def call():
        for _ in range(50):
            threads.run_parallel(lambda piece: np.eye(60) @ np.eye(60), range(4))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert threads.blas_threads() == before


def test_a_forked_child_scores(tmp_path):
    """The parent's threads do not exist in the child; it must make its own."""
    stream = Stream.synthetic(0, shots=[[3, 5], [2]], width=16, queries=400)
    classifier = learn(HyCal(), stream.steps)
    expected = classifier.predict(stream.queries)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(classifier.predict, (stream.queries,)), expected)


def test_scores_do_not_depend_on_the_threads(monkeypatch):
    stream = Stream.synthetic(0, shots=[[3, 5, 1], [2, 9]], width=16, queries=300)
    classifier = learn(HyCal(), stream.steps)
    results = []
    for cores in (1, 2):
        monkeypatch.setattr(threads, "blas_threads", lambda cores=cores: cores)
        results.append(classifier.class_scores(stream.queries))
    np.testing.assert_allclose(*results, atol=1e-4)


def test_a_server_keeps_blas_at_one_thread_and_still_works_side_by_side():
    """In a process of its own: the cap is for good."""
    code = """
import threading
import numpy as np
from hycal.parallel import threads
threads._controller().limit(limits=2)
before = threads.blas_threads()
threads.keep_one_blas_thread()
real = [library["num_threads"] for library in threads._controller().info()]
seen = set()
both = threading.Barrier(before, timeout=20)
def work(piece):
    both.wait()
    seen.add(threading.get_ident())
threads.run_parallel(work, range(before))
assert threads.blas_threads() == before and len(seen) == before and set(real) <= {1}, (before, real, seen)
assert [library["num_threads"] for library in threads._controller().info()] == real
"""
    subprocess.run([sys.executable, "-c", code], check=True)
