"""Finds the culprits from the group runs of a sweep, and the groups that would tell more. Pure.

`evidence/`: what is known. `rules/`: who is convicted. `significance.py`: whether a result may be random.
`diagnosis.py`: all rules together. `planning/`: what runs next. `strategies/`: how a sweep begins. `wording/`:
sentences for people. Must not import the life cycle of sweeps and groups: it sees finished group runs and proposes
probes. Start with `diagnosis.py`.
"""
