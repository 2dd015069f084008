"""How long to wait before the next try: twice as long after each failure, up to a limit."""


def backoff_s(failures: int, first_s: float, longest_s: float) -> float:
    """The pause in seconds after `failures` failures in a row, counted from 1.

    Example: with 1 and 300, the pauses are 1, 2, 4, …, 256, 300, 300 seconds.
    """
    return min(first_s * 2.0 ** min(failures - 1, 60), longest_s)
