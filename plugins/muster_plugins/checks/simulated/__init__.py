"""Simulated devices and the faults that can be put under them."""
