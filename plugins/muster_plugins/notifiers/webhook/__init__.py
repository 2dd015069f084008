"""Notifies other systems over HTTP when a node is drained or returns to service."""
