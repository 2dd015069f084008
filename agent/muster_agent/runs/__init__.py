"""Runs checks in child processes, and does everything else on a node that takes time.

Must not know the broker. Start with `runner.py`, then `launcher.py` (the parent of all children) and `child.py`.
"""
