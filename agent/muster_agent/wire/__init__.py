"""The agent's connections: the broker, the outbox, and the HTTP endpoint with the metrics.

Must not know processes. Start with `link.py`, then `outbox.py`. The room `decide` decides what is sent when.
"""
