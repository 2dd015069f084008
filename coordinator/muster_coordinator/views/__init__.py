"""Texts for people: records as text, sweep reports, explanations and exports.

Must not import the database or the network. Start with `text.py`; `sweeps/` holds everything about sweeps.
"""
