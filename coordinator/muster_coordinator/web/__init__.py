"""The HTTP API: a thin layer over the fleet, the store and the pipeline. Decides nothing about nodes or sweeps."""
