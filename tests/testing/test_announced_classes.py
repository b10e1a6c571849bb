"""Classes that are announced by their text keep the laws too, for every method that can use a name alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hycal import APE, GDA, DualRAIL, HyCal, HyCalError, PrimalRAIL, ProKeR, TipAdapter, ZeroShot, load
from hycal.testing.streams import Stream

METHODS = {
    "ZeroShot": ZeroShot(),
    "HyCal": HyCal(alpha=4),
    "HyCal concat released": HyCal(fusion="concat", rule="released", alpha=2),
    "HyCal mahalanobis": HyCal(metric="mahalanobis", reg=1e-2),
    "GDA": GDA(),
    "PrimalRAIL": PrimalRAIL(n_components=32),
    "DualRAIL": DualRAIL(),
    "TipAdapter": TipAdapter(),
    "ProKeR": ProKeR(),
    "APE": APE(),
}
STREAMS = st.builds(
    lambda seed, shots: Stream.synthetic(seed, shots=[shots, [2, 3]], width=12),
    st.integers(0, 2**31),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
)


def fresh(name):
    return type(METHODS[name])(**METHODS[name].get_params())


def taught(name, stream):
    """Announce both domains, and learn the first one."""
    first, second = stream.steps
    return announced(fresh(name), first, second).partial_fit(first.X, list(first.y), domain=first.domain)


def announced(classifier, *steps):
    for step in steps:
        classifier.announce(step.text, domain=step.domain)
    return classifier


def assert_same(one, two, queries):
    np.testing.assert_array_equal(one.classes_, two.classes_)
    np.testing.assert_array_equal(one.counts_, two.counts_)
    scores, other = one.class_scores(queries), two.class_scores(queries)
    assert np.abs(scores - other).max() <= 1e-5 * (1.0 + np.abs(scores).max())


@pytest.mark.parametrize("name", METHODS)
@given(stream=STREAMS)
def test_when_a_class_is_announced_does_not_matter(name, stream):
    first, second = stream.steps
    later = fresh(name).partial_fit(first.X, list(first.y), domain=first.domain, text=first.text)
    assert_same(taught(name, stream), announced(later, second), stream.queries)


@pytest.mark.parametrize("name", METHODS)
@given(stream=STREAMS)
def test_announcing_leaves_no_trace_once_learned_or_forgotten(name, stream):
    first, second = stream.steps
    plain = fresh(name).partial_fit(first.X, list(first.y), domain=first.domain, text=first.text)
    assert_same(taught(name, stream).forget(list(second.text)), plain, stream.queries)
    plain.partial_fit(second.X, list(second.y), domain=second.domain, text=second.text)
    learned = taught(name, stream).partial_fit(second.X, list(second.y), domain=second.domain)
    assert_same(learned, plain, stream.queries)


@pytest.mark.parametrize("name", METHODS)
def test_saving_and_merging_keep_announced_classes(name, tmp_path):
    stream = Stream.synthetic(3, shots=[[1, 4, 2], [2, 3]], width=12)
    model, (first, second) = taught(name, stream), stream.steps
    model.save(tmp_path / "model.safetensors")
    assert_same(model, load(tmp_path / "model.safetensors"), stream.queries)
    only = fresh(name).partial_fit(first.X, list(first.y), domain=first.domain, text=first.text)
    assert_same(model, only.merge(announced(fresh(name), second)), stream.queries)


@pytest.mark.parametrize("name", METHODS)
def test_renaming_renames_announced_classes_too(name):
    stream = Stream.synthetic(5, shots=[[3, 4], [2, 3]], width=12)
    labels = stream.labels
    renamed = dict(zip(labels, reversed(labels), strict=True))
    other = taught(name, stream.map(lambda step: step.relabelled(renamed.__getitem__)))
    scores = taught(name, stream).class_scores(stream.queries)
    moved = other.class_scores(stream.queries, classes=[renamed[label] for label in labels])
    assert np.abs(scores - moved).max() <= 1e-5 * (1.0 + np.abs(scores).max())


@pytest.mark.parametrize("name", METHODS)
def test_everything_can_be_asked_while_classes_are_only_announced(name):
    stream = Stream.synthetic(3, shots=[[5, 4, 6], [2, 3]], width=12)
    model = taught(name, stream)
    assert np.isfinite(model.leave_one_out().scores[:, model.counts_ > 0]).all()
    np.testing.assert_allclose(model.predict_proba(stream.queries).sum(axis=1), 1.0, rtol=1e-6)
    plain = taught(name, stream).forget(list(stream.steps[1].text))
    np.testing.assert_allclose(model.familiarity(stream.queries), plain.familiarity(stream.queries), atol=1e-9)
    assert model.tune().get_params() == plain.tune().get_params()


@pytest.mark.parametrize("name", METHODS)
def test_what_needs_images_says_so(name):
    model = announced(fresh(name), Stream.synthetic(3, shots=[[2]], width=12).steps[0])
    for ask in (lambda: model.familiarity(np.eye(12)), model.tune):
        with pytest.raises(HyCalError, match="only announced"):
            ask()


def test_a_class_announced_without_a_domain_merges_into_one_that_has_it():
    step = Stream.synthetic(3, shots=[[2, 3]], width=12).steps[0]
    learned = HyCal().partial_fit(step.X, list(step.y), domain="cars", text=step.text)
    learned.merge(HyCal().announce(step.text))
    assert set(learned.domains_) == {"cars"} and learned.counts_.tolist() == [2, 3]
