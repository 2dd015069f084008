"""What agents and the coordinator send each other over MQTT: topics, messages and their codec.

Only data belongs here. Nothing may depend on a feature that MQTT 3.1.1 lacks: versions, ids and expiry times are part
of the payload.
"""
