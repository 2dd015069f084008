"""Plugins for schedulers: they keep work off nodes, and say what runs there. Kubernetes, Slurm, a file.

A plugin must not decide which node is drained, and must not import another plugin. Start with `slurm/plugin.py`, which
lists the hooks, then `slurm/actor.py`.
"""
