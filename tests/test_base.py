"""What all methods share: domains, errors that say what to do, merging rules, answers before learning."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from hycal import SLDA, DualRAIL, HyCal, HyCalError, ZeroShot, base, load
from hycal.testing.streams import Stream, learn
from hycal.uncertainty import leave_one_out

X = np.eye(4)


def model(**options):
    return HyCal(fusion="image", **options).partial_fit(X[:2], ["cat", "dog"], domain="pets")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.partial_fit(X[:, :3], ["a"] * 4), r"3 features.*4-dimensional.*same encoder"),
        (lambda m: m.partial_fit([[np.nan] * 4], ["a"]), r"NaN.*finite embeddings"),
        (lambda m: m.partial_fit(np.zeros((0, 4)), []), r"0 sample.*one row per image"),
        (lambda m: m.partial_fit(X[0], ["a"]), r"Expected 2D array.*shape \(n, d\)"),
        (lambda m: m.partial_fit(np.zeros((1, 4)), ["a"]), r"Row 0 of X is all zeros.*Drop it"),
        (lambda m: m.partial_fit(X, ["a"]), r"4 rows but y has 1 labels"),
        (lambda m: m.partial_fit(X[:1], [None]), r"None is a NoneType.*astype\(str\)"),
        (lambda m: m.partial_fit(X[:1], [3]), r"mix str \('cat'\) and int \(3\)"),
        (lambda m: m.partial_fit(X[:1], ["a\0b"]), r"NUL.*Rename"),
        (lambda m: m.partial_fit(X[:1], ["cat"], domain="zoo"), r"'pets'.*'zoo'.*\"zoo/cat\".*domain='pets'"),
        (lambda m: m.partial_fit(X[:1], ["a"], text={"a": [1.0, 0.0]}), r"shape \(2,\); expected \(4,\)"),
        (lambda m: m.partial_fit(X[:1], ["a"], text={"a": [0.0] * 4}), r"length 0; expected a unit vector"),
        (lambda m: m.forget("cow"), r"'cow' is not among the 2 learned classes \('cat', 'dog'\).*spelling"),
        (lambda m: m.forget(["cow", "cat", "hen"]), r"'cow', 'hen' are not"),
        (lambda m: m.unlearn(X[2:3], ["cat"]), r"'cat'.*1 of 1 embeddings.*never learned"),
        (
            lambda m: m.merge(HyCal(fusion="image").fit(np.eye(3), ["a", "b", "c"])),
            r"4 dimensions .*the other 3 dimensions",
        ),
        (lambda m: m.merge(HyCal(fusion="image")), r"the other model has learned nothing yet. Fit it first"),
        (lambda m: m.predict(X, classes=["cow"]), r"'cow'"),
        (
            lambda m: m.announce({"cow": X[3]}),
            r"HyCal recognises classes by their images, and 'cow' has none yet.*ZeroShot",
        ),
        (lambda m: m.announce({}), r"No classes were announced"),
        (lambda m: m.announce({3: X[3]}), r"mix str"),
        (lambda m: m.announce({"cow": [1.0, 0.0]}), r"shape \(2,\); expected \(4,\)"),
        (lambda m: m.set_params(beta=-2).predict(X), r"'beta'"),
    ],
)
def test_errors_say_what_happened_and_what_to_do(call, message):
    learned = model()
    before = learned.decision_function(X)
    with pytest.raises(HyCalError, match=f"(?s){message}"):
        call(learned)
    np.testing.assert_array_equal(learned.set_params(beta=5).decision_function(X), before)
    assert learned.classes_.tolist() == ["cat", "dog"]


def test_a_failed_first_call_leaves_the_model_unfitted():
    fresh = HyCal()
    with pytest.raises(HyCalError):
        fresh.partial_fit(X, [0, 1, 2, 3])
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert not hasattr(fresh, "n_features_in_")


def test_a_failed_fit_keeps_what_was_learned():
    learned = model()
    with pytest.raises(HyCalError):
        learned.fit(np.full((2, 3), np.nan), [0, 1])
    assert learned.classes_.tolist() == ["cat", "dog"]


def test_text_that_changes_is_refused():
    learned = HyCal().partial_fit(X[:1], ["cat"], text={"cat": X[1]})
    learned.partial_fit(X[2:3], ["cat"])
    learned.partial_fit(X[2:3], ["cat"], text={"cat": X[1] + 1e-6})
    with pytest.raises(HyCalError, match="differs from the one"):
        learned.partial_fit(X[:1], ["cat"], text={"cat": X[3]})


def test_domain_may_be_left_out_of_an_update():
    learned = model().partial_fit(X[2:3], ["cat"]).partial_fit(X[3:], ["new"])
    assert dict(zip(learned.classes_, learned.domains_, strict=True)) == {"cat": "pets", "dog": "pets", "new": ""}


def test_models_of_different_encoders_do_not_merge():
    one, two = model(), model()
    one.encoder_, two.encoder_ = "sha256:a", "sha256:b"
    with pytest.raises(HyCalError, match="cannot be compared"):
        one.merge(two)
    two.encoder_ = None
    assert one.merge(two).encoder_ == "sha256:a"


def test_forgetting_everything_leaves_a_model_that_can_learn_again():
    learned = model().forget(["cat", "dog"])
    with pytest.raises(HyCalError, match="Every class was forgotten"):
        learned.predict(X)
    with pytest.raises(HyCalError, match="nothing to save"):
        learned.save("nowhere")
    with pytest.raises(HyCalError, match="4 features"):
        learned.partial_fit(X[:, :3], ["a"] * 4)
    assert learned.partial_fit(X[:1], ["cow"]).predict(X[:1]).tolist() == ["cow"]


def test_unlearning_the_last_sample_forgets_the_class():
    assert model().unlearn(X[:1], ["cat"]).classes_.tolist() == ["dog"]


def test_state_is_the_samples():
    assert model().nbytes_ == 2 * 4 * 4


def test_readers_see_a_whole_model_while_another_thread_learns():
    stream = Stream.synthetic(0, shots=[[2] * 8, [3] * 8, [2] * 8], width=16, queries=40)
    live = learn(HyCal(), stream.steps[:1])
    sizes, done = set(), threading.Event()

    def read():
        while not done.is_set():
            scores = live.decision_function(stream.queries)
            assert np.isfinite(scores).all()
            sizes.add(scores.shape[1])

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        learn(live, stream.steps[1:])
        live.forget([label for step in stream.steps[1:] for label in dict.fromkeys(step.y)])
    done.set()
    for reader in readers:
        reader.join()
    assert sizes <= {8, 16, 24}


@pytest.mark.parametrize("ask", ["predict_proba", "predict_set"])
def test_an_answer_is_of_one_model_though_another_thread_forgets(ask, monkeypatch):
    stream = Stream.synthetic(0, shots=[[4] * 5], width=16)
    live = learn(HyCal(), stream.steps)
    expected = getattr(learn(HyCal(), stream.steps), ask)(stream.queries)
    score = live.score_rows

    def forgotten_meanwhile(*given):
        monkeypatch.undo()
        scores = score(*given)
        live.forget(live.classes_[2:])
        return scores

    monkeypatch.setattr(live, "score_rows", forgotten_meanwhile)
    for row, same in zip(getattr(live, ask)(stream.queries), expected, strict=True):
        np.testing.assert_array_equal(row, same)


def test_a_number_from_numpy_is_a_number(tmp_path):
    learned = HyCal(alpha=np.int64(5), reg=np.float32(0.01), fusion="image").fit(X[:2], [1, 2])
    learned.save(tmp_path / "model")
    assert load(tmp_path / "model").get_params() == {**learned.get_params(), "reg": pytest.approx(0.01)}
    assert learned.forget(1.0).classes_.tolist() == [2]
    assert SLDA(shrinkage=np.float32(0.01)).fit(X, [1, 1, 2, 2]).predict_proba(X).shape == (4, 2)


def test_announced_classes_become_learned_ones():
    text = {"cat": X[0], "dog": X[1], "hen": X[2]}
    told = DualRAIL().announce(text).partial_fit(X[:2], ["cat", "dog"], domain="pets")
    assert told.counts_.tolist() == [1, 1, 0]
    assert told.domains_.tolist() == ["pets", "pets", ""]
    told.announce({"cat": X[0]}).partial_fit(X[2:3], ["hen"], domain="birds")
    plain = DualRAIL().partial_fit(X[:2], ["cat", "dog"], domain="pets", text=text)
    plain.partial_fit(X[2:3], ["hen"], domain="birds", text=text)
    assert told.domains_.tolist() == plain.domains_.tolist() == ["pets", "pets", "birds"]
    np.testing.assert_array_equal(told.decision_function(X), plain.decision_function(X))


def test_announced_classes_survive_unlearning_merging_and_forgetting():
    text = {"cat": X[0], "dog": X[1], "hen": X[2]}
    told = ZeroShot().announce(text).partial_fit(X[:2], ["cat", "cat"])
    assert told.unlearn(X[:1], ["cat"]).counts_.tolist() == [1, 0, 0]
    other = ZeroShot().announce({"owl": X[3]}, domain="birds")
    assert told.merge(other).classes_.tolist() == ["cat", "dog", "hen", "owl"]
    assert told.forget("dog").classes_.tolist() == ["cat", "hen", "owl"]
    assert told.unlearn(X[1:2], ["cat"]).classes_.tolist() == ["hen", "owl"]


def test_announcing_belongs_to_one_domain_and_one_text():
    told = ZeroShot().announce({"cat": X[0]}, domain="pets")
    with pytest.raises(HyCalError, match="'pets'"):
        told.announce({"cat": X[0]}, domain="zoo")
    with pytest.raises(HyCalError, match="differs"):
        told.announce({"cat": X[1]})
    with pytest.raises(HyCalError, match=r"expected \(4,\)"):
        told.announce({"dog": [1.0, 0.0]})
    assert told.classes_.tolist() == ["cat"]


def test_many_answers_are_scored_in_parts(monkeypatch):
    stream = Stream.synthetic(0, shots=[[3] * 5, [2] * 4], width=8, queries=30)
    fitted = learn(SLDA(), stream.steps)
    expected = fitted.classes_[fitted.decision_function(stream.queries).argmax(axis=1)]
    held_out, likely = fitted.leave_one_out(), fitted.calibration_.likelihood
    monkeypatch.setattr(base, "SCORES_AT_ONCE", 10)
    monkeypatch.setattr(leave_one_out, "SCORES_AT_ONCE", 10)
    np.testing.assert_array_equal(fitted.predict(stream.queries), expected)
    some = fitted.predict(stream.queries, classes=fitted.classes_[::-1][:5])
    assert set(some) <= set(fitted.classes_[::-1][:5])
    own = held_out.samples.each, held_out.samples.own
    np.testing.assert_array_equal(held_out.of_own(lambda scores, entries: scores[entries]), held_out.scores[own])
    np.testing.assert_array_equal(fitted.refresh().calibration_.likelihood.slopes, likely.slopes)
