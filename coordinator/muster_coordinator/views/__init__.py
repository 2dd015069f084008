"""What people read: records as text, sweep reports, explanations and exports.

Must not know the database or the network. Start with `text.py`; `sweeps/` holds all about sweeps.
"""
