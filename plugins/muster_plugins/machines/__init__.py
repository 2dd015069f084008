"""Plugins for what a node is: what its cloud and its firmware say about the machine.

A plugin must not guess, must not wait for a network that is not there, and must not import another plugin. Start with
`cloud/plugin.py`, then `cloud/clouds.py`, which has a table of the clouds.
"""
