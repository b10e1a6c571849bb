"""The commands of the `hycal` program: one file for each command, or for a few that belong together.

Of the package only `cli` imports it, and it imports a file when its command is called.
A command reads its options, calls another room and prints the result; it never learns, scores or writes by itself.
"""
