"""Kill -9, hundreds of times, in the middle of every operation that writes: python -m benchmarks.faults."""
