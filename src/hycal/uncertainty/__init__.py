"""Held-out samples: leave-one-out scores, temperature, prediction sets, unknown queries, tuning.

`base`, the methods and every room above them may import it; it imports `algebra`, `state`, `parallel` and below.
It never knows a particular method, and never reads or writes a file.
"""
