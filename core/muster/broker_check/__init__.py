"""What muster needs of an MQTT broker, tried on a real one.

`behaviour` has one function for each need, `access` tries what the account of a node may do, and `trial` runs them.
"""
