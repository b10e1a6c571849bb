"""Speed, memory and accuracy on real data. Run as modules from the root: python -m benchmarks.methods."""
