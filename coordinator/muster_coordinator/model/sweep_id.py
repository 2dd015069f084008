"""Ids of sweeps: short enough to be typed and told over the telephone."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from itertools import pairwise

LENGTH = 8
"""Characters of a to z and 2 to 7, five bits each: of 10,000 sweeps, two have the same id in 1 of 20,000 fleets."""


def sweep_id(unique: str) -> str:
    """The id of a sweep, made of a text that no other sweep has. The same text always gives the same id."""
    digest = hashlib.blake2b(unique.encode(), digest_size=LENGTH * 5 // 8).digest()
    return base64.b32encode(digest).decode().lower()


def shortened(ids: Iterable[str]) -> Mapping[str, str]:
    """By id, the shortest prefix of at least 8 characters that no other of `ids` begins with.

    An id that another one begins with stays whole: a whole id is always understood.
    """
    ordered = sorted(set(ids))
    needed = dict.fromkeys(ordered, LENGTH)
    for one, other in pairwise(ordered):  # what shares most with an id stands beside it
        unlike = _alike(one, other) + 1
        needed[one], needed[other] = max(needed[one], unlike), max(needed[other], unlike)
    return {whole: whole[:length] for whole, length in needed.items()}


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    places = range(min(len(one), len(other)))
    return next((place for place in places if one[place] != other[place]), len(places))
