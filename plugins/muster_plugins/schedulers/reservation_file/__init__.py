"""Keeps work off this node by a file that a scheduler's prolog or a script looks for."""
