"""The picture of the results of pairs of nodes: nodes by nodes."""
