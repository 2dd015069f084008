"""The next groups: those that would tell most about the nodes and paths that are inconclusive.

Must not decide who is at fault. Start with `follow_up.py`.
"""
