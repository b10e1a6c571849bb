"""A method in a package of its own, as a template: `hycal new method NAME` writes a copy under another name.

The files are a working method with its test, so style, types and tests of hycal hold for them, too.
"""
