"""Exponential backoff: the wait before the next try doubles after each failure, up to a limit.

The idea: a service that is down for a second is tried again at once, and a service that is down for hours costs almost
nothing. The exponent is limited to 60, so that millions of failures do not overflow a float. Callers whose peers fail
all at once, such as a fleet that loses its broker, add jitter (`mqtt.pause_s`).

Written by hand, because libraries such as tenacity call and wait themselves, and decisions need only the seconds.
"""


def backoff_s(failures: int, first_s: float, longest_s: float) -> float:
    """The wait in seconds after `failures` failures in a row, counted from 1.

    Example: with `first_s` 1 and `longest_s` 300, the waits are 1, 2, 4, …, 256, 300, 300 seconds.
    """
    return min(first_s * 2.0 ** min(failures - 1, 60), longest_s)
