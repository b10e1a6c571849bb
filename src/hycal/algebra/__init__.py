"""Pure functions and packed structures on arrays: covariances, Gaussians, ridge regression, feature maps, scores.

`uncertainty`, `export`, the methods and every room above them may import it; it imports `state`, `parallel` and below.
It never imports scikit-learn or torch, and never reads or writes a file.
"""
