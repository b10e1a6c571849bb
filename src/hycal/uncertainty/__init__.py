"""What a model says about samples it did not see: leave-one-out, temperature, prediction sets, the unknown, tuning.

`base` and the methods build on it.
It never knows a particular method.
"""
