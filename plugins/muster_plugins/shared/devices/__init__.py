"""What the checks `nvml` and `simulated` share: readings of devices, their history, and how they are judged."""
