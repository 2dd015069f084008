"""The generator gives messages that are valid, and mutations that differ and come again with the same seed."""

import itertools
from random import Random

import pytest
from tests.hostile.mutation import messages, mutate

from muster.errors import RemoteError
from muster.wire import codec

FIXED = {"node": "n1", "after": 0}


@pytest.mark.parametrize(
    "kind",
    [
        *(codec.PRESENCE, codec.INVENTORY, codec.REPORT, codec.GROUP_REPLY),
        *(codec.ACK, codec.COMMAND, codec.COORDINATOR, codec.REFERENCES),
    ],
    ids=lambda kind: str(kind.core_schema.get("ref", "union"))[:40],
)
def test_messages_are_valid(kind):
    """What is generated for a topic is decoded there."""
    made = messages(kind, Random(1), **FIXED, seq=itertools.count(1).__next__)
    assert all(codec.decode(payload, kind) for payload in itertools.islice(made, 300))


def test_mutations_are_seen_through_or_refused():
    """Most mutations are refused, and some still are messages: both ways on are taken."""
    random = Random(2)
    taken = 0
    for payload in itertools.islice(messages(codec.COMMAND, random), 500):
        try:
            codec.decode(mutate(payload, random), codec.COMMAND)
            taken += 1
        except RemoteError:
            continue
    assert 20 < taken < 400


def test_the_same_seed_gives_the_same_bytes():
    """A failure can be played again from its seed."""

    def made(seed):
        random = Random(seed)
        return [mutate(payload, random) for payload in itertools.islice(messages(codec.REPORT, random, **FIXED), 50)]

    assert made(3) == made(3) != made(4)
