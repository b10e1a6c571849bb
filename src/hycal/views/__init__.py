"""Several encoders in one model: a model of the method for each view, and the weights of their evidence.

`base` and the rooms above it may import it; it imports `sealing`, `uncertainty` and below.
It never embeds an image, and never names a method or an encoder.
"""
