"""The agent's connections: the broker, the outbox, and the HTTP endpoint with the metrics.

Must not import anything about processes. Start with `link.py`, then `outbox.py`. The package `decide` decides when the
agent sends something.
"""
