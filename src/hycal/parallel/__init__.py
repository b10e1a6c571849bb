"""Independent pieces of work: on threads of this process, on processes of this machine, on a Ray or Dask cluster.

Every room above it may import it; it imports `validation` and `errors` alone.
It never knows what the work is.
"""
