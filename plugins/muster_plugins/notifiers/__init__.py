"""Plugins that notify people and other systems of muster's decisions.

A plugin must not change a node, and must not import another plugin. Start with `webhook/plugin.py`, which lists the
hooks.
"""
