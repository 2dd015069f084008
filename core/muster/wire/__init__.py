"""What agents and the coordinator say to each other over MQTT: topics, messages and the codec between them and bytes.

Only data may live here, and nothing may rest on a feature that MQTT 3.1.1 lacks: versions, ids and expiry times are
part of the payload.
"""
