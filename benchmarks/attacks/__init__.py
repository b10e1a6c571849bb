"""Hostile cases: what is promised, and programs that try to break it."""
