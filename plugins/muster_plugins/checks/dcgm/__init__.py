"""The check `dcgm`: NVIDIA's own diagnostic."""
