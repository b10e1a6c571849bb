"""Models that learned the same samples in different calls and under different names."""

from __future__ import annotations

from hycal.testing.streams import Stream, learn

SAME = Stream.synthetic(0, shots=[[4, 1, 3], [5, 6]], width=16)


def same_knowledge(method):
    """Return three models: the stream as it is, backwards, and with its labels renamed."""
    backwards = [step.rows(range(len(step.y) - 1, -1, -1)) for step in reversed(SAME.steps)]
    renamed = SAME.map(lambda step: step.relabelled(lambda label: 9 - label)).steps
    return [learn(method(), steps) for steps in (SAME.steps, backwards, renamed)]
