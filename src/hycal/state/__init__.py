"""What a model knows, as an algebra: the samples of each class, and the table of all classes.

Every room above it may import it; it imports `validation` and `errors` alone.
It never knows a method, a file or an image.
"""
