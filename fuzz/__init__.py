"""Hostile bytes for everything that reads files or requests of strangers: make fuzz."""
