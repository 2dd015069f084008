"""Slurm: drains and resumes nodes, reserves them for tests, and says whether a job has this node."""
