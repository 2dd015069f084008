"""Finds the culprits from the group runs of a sweep, and the groups that would tell more. Pure.

`evidence/`: what is known. `likelihood/`: how much more likely it is than by chance. `significance.py`: whether lies
may explain it. `rules/`: who is convicted. `diagnosis.py`: all rules together. `planning/`: what runs next.
`strategies/`: how a sweep begins. `wording/`: sentences for people. Must not import the life cycle of sweeps and
groups: it sees finished group runs and proposes probes. Start with `diagnosis.py`.
"""
