"""Plugins for schedulers: they keep work off nodes, and say what runs there. Kubernetes, Slurm, a file."""
