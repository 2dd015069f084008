"""All decisions of an agent. Pure: no clock, process, socket or file.

Must not import any other room. Start with `node.py` (`handle(event, now) -> commands`). Then read `session.py` (the
node's part in a group), `lease.py` (which run holds the node) and `delivery.py` (no run is lost).
"""
