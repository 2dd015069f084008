"""The agent's connections: the broker, the outbox that nothing is lost from, and the HTTP endpoint with the metrics.

Must not know processes. Start with `link.py`, then `outbox.py`.
"""
