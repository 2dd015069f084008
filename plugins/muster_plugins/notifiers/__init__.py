"""Plugins that notify people and other systems of muster's decisions."""
