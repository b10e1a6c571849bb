"""A pile of unlabelled images: what to label next, groups among what is unknown, sorting with undo, search, duplicates.

`commands` and `serve` may import it; it imports `base`, `uncertainty`, `storage` and below.
It never embeds an image and never changes a model. `moves` never replaces a file.
"""
