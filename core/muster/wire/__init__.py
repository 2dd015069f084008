"""The messages between agents and the coordinator over MQTT: topics, messages and their codec.

This package holds only data. Nothing may depend on a feature that MQTT 3.1.1 lacks: versions, ids and expiry times are
part of the payload.
"""
