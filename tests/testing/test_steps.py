"""The law of small steps, for every variant that follows changes."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM
from hycal.algebra.classwise_head import ClasswiseHead
from hycal.testing.laws import small_steps
from hycal.testing.streams import Stream, learn
from tests.testing.test_laws import VARIANTS

FOLLOWING = [name for name, one in VARIANTS.items() if not one.rebuilt_because]


@pytest.mark.parametrize("variant", FOLLOWING)
def test_small_steps_answer_as_a_model_built_anew(variant):
    assert small_steps(VARIANTS[variant]) == []


class _Forgetful(NCM):
    """Keeps the weights of classes that changed."""

    def derive(self, records, previous):
        if previous is not None and len(records.ordered) == len(previous.bias):
            return ClasswiseHead(previous.features, previous.weights, previous.bias, records, 1)
        return super().derive(records, previous)


class _Slow(NCM):
    """Says that it follows changes, and does not."""

    def derive(self, records, previous):
        return super().derive(records, None)


def test_the_law_finds_a_model_that_is_stale():
    assert any("scores differ" in complaint for complaint in small_steps(_Forgetful()))


def test_the_law_finds_a_model_that_is_built_anew():
    assert any("built anew" in complaint for complaint in small_steps(_Slow()))


@pytest.mark.parametrize("variant", ["HyCal", "SLDA", "HierarchicalHyCal"])
def test_many_steps_end_in_the_records_of_one(variant):
    stream = Stream.synthetic(0, shots=[[60] * 5, [50] * 4], width=8)
    rowwise = [step.rows([row]) for step in stream.steps for row in range(len(step.y))]
    many = learn(VARIANTS[variant].with_parameters(), rowwise[:400])
    for step in rowwise[400:]:
        learn(many, [step]).predict(stream.queries[:1])
    one = learn(VARIANTS[variant].with_parameters(), stream.steps)
    assert all(many.records_.by_label[label].samples == one.records_.by_label[label].samples for label in stream.labels)
    np.testing.assert_array_equal(
        many.refresh().decision_function(stream.queries), one.decision_function(stream.queries)
    )
