"""The checks `script.<name>`: executables of the operator."""
