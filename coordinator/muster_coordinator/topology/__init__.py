"""Where nodes stand, and which nodes a selection means. Pure.

Knows topology files, Slurm host lists, and how leaves show in the bandwidth of pairs. Must not know health or sweeps.
Start with `selection.py`; `learned.py` explains how leaves are learned.
"""
