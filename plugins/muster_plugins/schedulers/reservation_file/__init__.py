"""Keeps work off this node with a file that a scheduler's prolog or a script checks."""
