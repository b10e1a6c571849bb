"""Files that survive crashes: atomic writes, locks, arrays, the model file and its codec.

Whoever keeps a file imports it.
It never executes what it reads.
"""
