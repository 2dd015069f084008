"""How far the runs of a part are from a conviction, as a figure for people."""

import math


def odds_words(log_ratio: float, bound: float, runs: str, part: str) -> str:
    """A clause with the likelihood ratio of these `runs` and the bound of a `part`, both given as logarithms.

    Empty if the runs tell nothing against the part, and if they are enough: then something else is missing.
    """
    if not 0 < log_ratio < bound:
        return ""
    return (
        f", and {runs} are {math.exp(log_ratio):,.0f} times as likely if the {part} is bad as by chance;"
        f" {math.exp(bound):,.0f} times convict a {part} of this fleet"
    )
