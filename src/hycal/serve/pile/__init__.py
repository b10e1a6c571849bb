"""The pile of a server: images to label one by one or in groups, by several people, and to sort.

`hycal.pile` chooses, groups and sorts; here are the images, the queue, the leases and the routes.
It never reads a path that a client sent, and never moves a file of the pile.
"""
