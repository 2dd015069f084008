"""The picture of what pairs of nodes reached: nodes by nodes."""
