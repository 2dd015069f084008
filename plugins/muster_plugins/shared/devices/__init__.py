"""Code that the checks `nvml` and `simulated` share: readings of devices, their history, and their judgement."""
