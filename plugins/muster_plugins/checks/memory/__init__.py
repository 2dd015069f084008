"""The check `memory`: memory of devices, and copies from, to and between them."""
