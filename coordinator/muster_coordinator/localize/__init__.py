"""Who is at fault, from what the groups of a sweep showed, and which groups would tell more. Pure.

Must not know the life of sweeps and groups: it sees finished trials and proposes probes.
Start with `strategy.py`, then `culprits.py` (who is at fault) and `next_round.py` (what to run next).
"""
