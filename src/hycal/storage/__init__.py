"""Files that survive crashes: atomic writes, locks, arrays, the model file and its codec.

Every room that writes a file imports it.
It never executes what it reads, and never knows a method, an encoder or an image.
"""
