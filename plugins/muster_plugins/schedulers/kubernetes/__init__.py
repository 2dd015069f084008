"""Kubernetes: cordons and uncordons nodes, reserves them for tests, and says whether pods have their GPUs."""
