"""The next groups: those that would tell most about the nodes and paths that are inconclusive.

Must not convict anyone. Start with `follow_up.py`.
"""
