"""Texts about a sweep: progress, result, explanation and exports. Pure functions of its record."""
