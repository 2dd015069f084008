"""Kubernetes: whether it has given GPUs of this node to anybody."""
