"""Runs checks in child processes and does what else takes time on a node.

Must not know the broker. Start with `runner.py`, then `launcher.py` (the parent of all children) and `child.py`.
"""
