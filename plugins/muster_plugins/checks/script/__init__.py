"""Executables of the operator: the checks `script.<name>`, and the actor that is run when a node changes its state."""
