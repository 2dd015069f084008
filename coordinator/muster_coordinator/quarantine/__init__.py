"""What we do about nodes: who is taken out of service, when, and how each comes back. Pure.

Must not know sweeps: a test is asked for with `StartTest`, and `TestEnded` says how it ended.
Start with `machine.py`; `policy.py` says which findings take a node out, `budget.py` how many may be out.
"""
