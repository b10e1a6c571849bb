"""Tests of NearestMedian: the laws that every method of hycal keeps, and what it computes."""

import numpy as np

from hycal.testing import Stream, check_laws, learn
from hycal.testing.template.method import NearestMedian


def test_it_keeps_the_laws() -> None:
    """Order, splitting, merging, forgetting and saving make no difference; a law that fails says which."""
    check_laws(NearestMedian())


def test_its_scores_are_those_of_the_formula() -> None:
    """Compare with the formula, written for reading."""
    stream = Stream.synthetic(0, shots=[[5, 4], [6]], width=8)
    classifier = learn(NearestMedian(pull=0.3), stream.steps)
    queries = stream.queries / np.linalg.norm(stream.queries, axis=1, keepdims=True)
    expected = []
    for record in classifier.records_.ordered:
        rows = record.samples.rows.astype(np.float64)
        centre = 0.7 * np.median(rows, axis=0) + 0.3 * rows.mean(axis=0)
        expected.append(queries @ centre / np.linalg.norm(centre))
    np.testing.assert_allclose(classifier.decision_function(stream.queries), np.stack(expected, axis=1), atol=1e-5)
