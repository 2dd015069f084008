"""All decisions of an agent. Pure: no clock, process, socket or file.

Start with `node.py` (`handle(event, now) -> commands`), then `session.py` (a group) and `lease.py` (who holds the
node).
"""
