"""The generator gives valid messages and varied mutations, the same ones for the same seed."""

import itertools
from random import Random

import pytest
from tests.hostile.mutation import messages, mutate

from muster.errors import RemoteError
from muster.wire import codec

FIXED = {"node": "n1", "after": 0}


KINDS = ("PRESENCE", "INVENTORY", "REPORT", "GROUP_REPLY", "ACK", "COMMAND", "COORDINATOR", "REFERENCES")


@pytest.mark.parametrize("name", KINDS)
def test_messages_are_valid(name):
    """The codec of each topic decodes the messages that are generated for it."""
    kind = getattr(codec, name)
    made = messages(kind, Random(1), **FIXED, seq=itertools.count(1).__next__)
    assert all(codec.decode(payload, kind) for payload in itertools.islice(made, 300))


def test_some_mutations_are_still_valid():
    """The codec refuses most mutations and accepts some, so that a fuzz test reaches the code behind it."""
    random = Random(2)
    accepted = 0
    for payload in itertools.islice(messages(codec.COMMAND, random), 500):
        try:
            codec.decode(mutate(payload, random), codec.COMMAND)
            accepted += 1
        except RemoteError:
            continue
    assert 20 < accepted < 400


def test_the_same_seed_gives_the_same_bytes():
    """A failure can be repeated with its seed."""

    def made(seed):
        random = Random(seed)
        return [mutate(payload, random) for payload in itertools.islice(messages(codec.REPORT, random, **FIXED), 50)]

    assert made(3) == made(3) != made(4)
