"""Pure functions and packed structures on arrays: covariances, Gaussians, ridge regression, feature maps, scores.

Methods, uncertainty and export build on it.
It never imports scikit-learn or torch, and touches no file.
"""
