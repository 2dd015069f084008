"""Where nodes stand, by a file of the operator's or as learned from sweeps, and which nodes a selection means. Pure."""
