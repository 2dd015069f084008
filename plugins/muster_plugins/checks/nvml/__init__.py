"""The check `nvml`: what NVIDIA's driver reports."""
