"""A package, so that what its tests share ends with the last of them instead of running beside all that come after."""
