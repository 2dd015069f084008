"""What people read: records as text, sweep reports, explanations and exports, and what web pages show.

Must not import the database or the network. Start with `text.py`; `sweeps/` holds everything about sweeps, `pages/`
everything about web pages.
"""
