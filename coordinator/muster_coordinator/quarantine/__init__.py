"""What we do about nodes: which ones are drained, when, and how each returns to service. Pure.

Must not import any room but `model`, so no sweeps: `StartTest` requests a test, and `TestEnded` says how it ended.
Start with `reconciler.py`; `change.py` says what an event can change, `policy.py` which findings require draining,
`desired.py` which state a node should have, `admission.py` which node may be cordoned now.
"""
