"""Positions of nodes, and the nodes that a selection chooses. Pure.

Contains topology files, Slurm host lists, and how leaves show in the bandwidth of pairs. Must not import health or
sweeps. Start with `selection.py`; `learned.py` explains how leaves are learned.
"""
