"""The parameters of checks that have none."""

from muster import Params


class NoParams(Params):
    """No parameters."""
