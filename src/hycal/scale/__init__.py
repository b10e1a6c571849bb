"""Very many samples or classes: learning in shards, and a shortlist of candidates before scoring.

Commands and the benchmark import it.
It never changes an answer: shards merge exactly, a shortlist says what it skips.
"""
