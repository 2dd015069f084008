"""The parts that do I/O while the coordinator runs: MQTT, the pipeline, actors, pollers, events, metrics.

Decides nothing about nodes or sweeps. Must not import HTTP routes. Start with `pipeline.py` (stores every decision,
then carries it out), then `link.py` (MQTT in and out).
"""
