"""Hostile input, each kind against the promise that it tries to break: python -m benchmarks.attacks."""
