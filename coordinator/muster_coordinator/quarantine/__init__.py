"""What we do about nodes: who is taken out of service, when, and how each comes back. Pure.

Imports only `model`, not sweeps: a test is asked for with `StartTest`, and `TestEnded` says how it ended.
Start with `reconciler.py`; `policy.py` says which findings require draining, `desired.py` which state a node should
have, `admission.py` which node may go now.
"""
