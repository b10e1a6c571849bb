"""Rejection keeps what it promises on real embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, HierarchicalHyCal, HyCal, HyCalError
from hycal.data.bundled import load_xd8
from tests.uncertainty.knowledge import SAME, same_knowledge


def test_known_images_are_rejected_as_often_as_stated_and_others_more():
    xd8 = {name: load_xd8()[name] for name in ("texture", "digit", "art", "galaxy")}
    fitted = HierarchicalHyCal()
    for name in ("texture", "digit"):
        domain = xd8[name]
        fitted.partial_fit(domain.train_x, [f"{name}/{c}" for c in domain.train_y], domain=name)
    X = np.concatenate([domain.test_x[::2] for domain in xd8.values()])
    truth = np.array([f"{name}/{c}" for name, domain in xd8.items() for c in domain.test_y[::2]])
    known = np.isin(truth, fitted.classes_)
    for error in (0.05, 0.2):
        unknown = fitted.unknown(X, error)
        assert abs(unknown[known].mean() - error) < 0.05
        assert unknown[~known].mean() > 0.9
    assert fitted.familiarity(X[known]).mean() > fitted.familiarity(X[~known]).mean() + 3.0


def test_what_cannot_be_held_out_cannot_be_rejected():
    one = NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    with pytest.raises(HyCalError, match="No class has two samples"):
        one.unknown([[1.0, 0.0]])
    for share in (0.0, 1.0, 5.0):
        with pytest.raises(HyCalError, match="expected a share"):
            one.unknown([[1.0, 0.0]], share)


@pytest.mark.parametrize("method", [HyCal, HierarchicalHyCal, NCM])
def test_familiarity_does_not_depend_on_calls_or_names(method):
    one, *others = same_knowledge(method)
    for other in others:
        familiar = one.familiarity(SAME.queries)  # scored in float32, of seven digits
        np.testing.assert_allclose(other.familiarity(SAME.queries), familiar, rtol=1e-6, atol=1e-6)
