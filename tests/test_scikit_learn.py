"""The methods behave as scikit-learn expects: its own checks, clone, pipelines, cross-validation, pickling."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hycal import GDA, KLDA, NCM, DualRAIL, FeCAM, HyCal, HyCalError, RanPAC
from tests.support.commands import run_python

_TWO_CLASSES = "decision_function always has one column per class, also for two classes"
DELIBERATE = {
    "check_classifiers_classes": _TWO_CLASSES,
    "check_classifiers_train": _TWO_CLASSES,
    "check_decision_proba_consistency": _TWO_CLASSES,
    "check_estimators_dtypes": "a row of zeros has no direction and is refused",
}
FLOAT32 = {"check_methods_subset_invariance": "float32 scoring; on two features the distance cancels to fewer digits"}
BASELINES = [  # one of each kind of score
    NCM(),
    GDA(zero_shot="none"),
    FeCAM(),
    DualRAIL(zero_shot="none"),
    KLDA(n_components=50),
    RanPAC(n_components=50),
]


with warnings.catch_warnings():  # that the methods do not extend BaseEstimator, whose import takes seconds
    warnings.filterwarnings("ignore", "Estimator .* does not inherit")
    with_checks = parametrize_with_checks(
        [HyCal(fusion="image"), *BASELINES],
        expected_failed_checks=lambda estimator: DELIBERATE | FLOAT32 if isinstance(estimator, HyCal) else DELIBERATE,
    )


@with_checks
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.skipif(bool(os.environ.get("SCIPY_ARRAY_API")), reason="the checks run in this process already")
def test_scikit_learn_checks_of_the_array_interface():
    """SciPy reads the variable when it is imported, so these checks need a process of their own."""
    done = run_python("-m", "pytest", "-q", "-k", "array_api", __file__, environment={"SCIPY_ARRAY_API": "1"})
    assert done.returncode == 0 and f"{1 + len(BASELINES)} passed" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def test_clone_and_parameters():
    original = HyCal(alpha=3, fusion="image")
    copy = clone(original)
    assert copy is not original
    assert copy.get_params() == original.get_params()


def test_cross_validation_pipeline_and_grid_search(digits):
    X, y = digits
    assert cross_val_score(HyCal(fusion="image"), X, y, cv=3).mean() > 0.9
    assert cross_val_score(make_pipeline(StandardScaler(), HyCal(fusion="image")), X, y, cv=3).mean() > 0.85
    search = GridSearchCV(HyCal(fusion="image"), {"alpha": [5, 50]}, cv=3).fit(X, y)
    assert search.best_params_["alpha"] in (5, 50)


def test_fit_is_a_fresh_start(digits):
    X, y = digits
    classifier = HyCal(fusion="image").fit(X, y)
    classifier.fit(X[:, :30][y < 2], y[y < 2])
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.n_features_in_ == 30


def test_pickling_keeps_the_answers(digits):
    X, y = digits
    classifier = HyCal(fusion="image").fit(X, y)
    scores = classifier.decision_function(X[:20])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(classifier)).decision_function(X[:20]), scores)


def test_probabilities_are_features_in_the_container_that_was_asked_for(digits):
    X, y = digits
    frame = pd.DataFrame(X, index=[f"image {number}" for number in range(len(X))])
    names = [f"digit {label}" for label in y]
    classifier = clone(NCM().set_output(transform="pandas")).fit(X, names)
    found = classifier.transform(frame[:3])
    assert found.columns.tolist() == classifier.classes_.tolist()
    assert found.index.tolist() == ["image 0", "image 1", "image 2"]
    np.testing.assert_array_equal(found.to_numpy(), classifier.predict_proba(X[:3]))
    assert isinstance(classifier.set_output(transform="default").transform(frame), np.ndarray)
    with config_context(transform_output="pandas"):
        assert isinstance(NCM().fit(X, names).transform(X), pd.DataFrame)
    with pytest.raises(HyCalError, match="expected one of default, pandas, polars"):
        classifier.set_output(transform="parquet")
    stacked = make_pipeline(StandardScaler(), NCM(), LogisticRegression()).set_output(transform="pandas")
    assert stacked.fit(X, y).score(X, y) > 0.9


def test_two_classes_have_two_columns_of_scores(digits):
    X, y = digits
    X, y = X[y < 2], y[y < 2]
    assert NCM().fit(X, y).decision_function(X).shape == (len(X), 2)


def test_classes_to_come_may_be_named_and_need_not(digits):
    X, y = digits
    classifier = NCM().partial_fit(X[y < 2], y[y < 2], classes=np.arange(3))
    assert classifier.classes_.tolist() == [0, 1]
    with pytest.raises(HyCalError, match="the label 5, which is not in classes"):
        classifier.partial_fit(X[y == 5], y[y == 5], classes=[0, 1])
    assert classifier.partial_fit(X[y == 5], y[y == 5]).classes_.tolist() == [0, 1, 5]
