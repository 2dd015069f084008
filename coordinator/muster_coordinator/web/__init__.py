"""The HTTP API and the web pages: a thin layer over the fleet, the store and the pipeline; the client for commands.

Must not decide anything about nodes or sweeps. Start with `route_table.py`, which names the method that answers each
route; `guard.py` decides who may use the API. `pages/` has the web pages.
"""
