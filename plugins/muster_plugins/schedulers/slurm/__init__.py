"""Slurm: whether it has given this node to anybody."""
