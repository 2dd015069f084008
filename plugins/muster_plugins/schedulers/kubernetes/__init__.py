"""Kubernetes: keeps nodes out of its scheduling and lets them back, and tells whether it has given GPUs to anybody."""
