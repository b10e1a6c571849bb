"""A classifier is a scikit-learn estimator: pipelines, cross-validation, grid search."""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from hycal import SLDA, HyCal

X, y = load_digits(return_X_y=True)
pipeline = make_pipeline(PCA(20, random_state=0), SLDA())
print(f"PCA, then SLDA: {100 * cross_val_score(pipeline, X, y, cv=3).mean():.1f}%")
search = GridSearchCV(HyCal(fusion="image"), {"reg": [1e-4, 1e-2]}, cv=3).fit(X[:600], y[:600])
print("best parameter:", search.best_params_)
