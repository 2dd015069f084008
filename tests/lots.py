"""How many seeds the simulations try: some in every run of the tests, and many when somebody asks for them."""

import os

FACTOR = int(os.environ.get("MUSTER_SEEDS", "1"))


def examples(count: int) -> int:
    """How many examples a property tries: `count`; with MUSTER_SEEDS=4, four times as many."""
    return count * FACTOR


def seeds(count: int) -> range:
    """The first `count` seeds; with MUSTER_SEEDS=4, four times as many."""
    return range(examples(count))
