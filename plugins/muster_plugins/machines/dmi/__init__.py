"""The firmware of a node: the name that its maker has given to the machine."""
