"""Checks. Each package is a plugin, and its `check.py` (or `plugin.py`) is what an entry point registers."""
