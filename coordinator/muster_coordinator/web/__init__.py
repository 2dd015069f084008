"""The HTTP API: a thin layer over the fleet, the store and the pipeline, and the client that commands use.

Decides nothing about nodes or sweeps. Start with `route_table.py`, which names the method that answers each
route; `guard.py` says who may use the API.
"""
