"""Executables of the operator: the checks `script.<name>`, and the actor that runs when a node changes its state."""
