"""The commands of the `hycal` program: one file for each command, or for a few that belong together.

Only `hycal.cli` imports this room, and it imports a file when its command is called.
A command reads its options, calls one other room and prints the result; it never computes anything itself.
"""
