"""Helpers that several folders of tests share. Nothing here is a test, and no helper imports a test."""
