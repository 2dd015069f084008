"""Simulated devices, with faults on request."""
