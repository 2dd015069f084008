"""The life of sweeps and of their groups, from a request to a verdict. Pure.

Must not import the quarantine. `localize` finds the culprits and the groups to form. Start with `registry.py` (all
sweeps), then `sweep.py` (one sweep) and `group.py` (one group, with its states).
"""
