"""Shared records, events, commands and orders. No decisions.

A record that two rooms need lives here. Must not know any other room.
Start with `events.py` (what happens to the fleet, what the fleet wants done) and `nodes.py`.
"""
