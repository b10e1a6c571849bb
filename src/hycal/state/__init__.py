"""What a model knows, as an algebra: the samples of each class, and the table of all classes.

Everything may import it.
It never knows a method, a file or an image.
"""
