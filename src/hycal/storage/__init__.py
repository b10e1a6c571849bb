"""Files that survive crashes: atomic writes, locks, arrays, the model file and its codec.

`base`, `export`, `classifiers`, `embedding` and every room above them may import it.
It never executes what it reads, and never knows a method, an encoder or an image.
"""
