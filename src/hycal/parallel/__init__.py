"""Where work is done: threads of this process, processes of this machine, a Ray or Dask cluster.

Everything may import it.
It never knows what the work is.
"""
