"""Plugins that tell people and other systems what muster has decided."""
