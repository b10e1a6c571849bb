"""For authors of methods: the laws as checks that any classifier can run, and small streams of data.

Tests and other packages import it; nothing in hycal but the benchmark does.
It never needs real data.
"""
