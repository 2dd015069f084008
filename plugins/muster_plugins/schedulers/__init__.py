"""Plugins that keep work off nodes in a scheduler, and say what runs there: Kubernetes, Slurm, a file."""
