"""Who is at fault, from what the groups of a sweep showed, and which groups would tell more. Pure.

`evidence/` what is known; `rules/` who is at fault; `significance.py` whether it is chance; `diagnosis.py` all rules
together; `planning/` what runs next; `strategies/` how a sweep begins; `wording/` how it is said.
Must not know the life of sweeps and groups: it sees finished group runs and proposes probes.
Start with `diagnosis.py`.
"""
