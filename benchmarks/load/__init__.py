"""A real server under load, while it learns: python -m benchmarks.load."""
