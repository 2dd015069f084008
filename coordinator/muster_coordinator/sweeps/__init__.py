"""The life of sweeps and of their groups, from a request to a verdict. Pure."""
