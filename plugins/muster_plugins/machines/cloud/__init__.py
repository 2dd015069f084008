"""The cloud of a node: what its metadata server says."""
