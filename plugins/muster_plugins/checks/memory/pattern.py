"""The pattern test: fills much of a device's memory with known words, reads them back and compares.

It writes all of the tested memory before it reads any of it, so that the words do not come from a cache.
"""

from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from muster.model import Json
from muster_plugins.checks.memory.params import Pattern
from muster_plugins.shared.torch_device import Place, free_bytes
from muster_plugins.shared.torch_failures import NotEnoughMemoryError

if TYPE_CHECKING:
    import torch

WORD_BYTES = 8

BLOCK_BYTES = {"cuda": 64 << 20, "cpu": 1 << 20}
"""The size of one allocation, write and comparison."""

WORKING_BLOCKS = 4
"""Blocks that stay free: making a pattern and comparing with it takes memory, too."""

MAX_MISMATCHES = 4
"""Maximum number of mismatches of one device that are reported in detail; all are counted."""


class PatternJob(NamedTuple):
    """Tests `share` of the free memory, but at most `limit_bytes`, with every pattern in every round."""

    share: float
    limit_bytes: int | None
    patterns: tuple[Pattern, ...]
    rounds: int
    seed: int


class Verified(NamedTuple):
    """The size of the tested memory, the number of wrong words (each pattern counts), and details of some of them."""

    tested_bytes: int
    wrong_words: int
    mismatches: list[JsonValue]


def verify(place: Place, job: PatternJob) -> Verified:
    """Tests the memory of one device. Raises NotEnoughMemoryError if hardly any memory is free."""
    blocks = _allocate(place, job)
    found = [
        mismatch
        for turn in range(job.rounds)
        for pattern in job.patterns
        for mismatch in _written_and_read(blocks, pattern, job.seed + turn * len(blocks))
    ]
    return Verified(
        tested_bytes=len(blocks) * BLOCK_BYTES[place.backend],
        wrong_words=sum(words for words, _ in found),
        mismatches=[detail for _, detail in found[:MAX_MISMATCHES]],
    )


def _allocate(place: Place, job: PatternJob) -> "list[torch.Tensor]":
    import torch  # noqa: PLC0415  only child processes may load torch

    block_bytes, free = BLOCK_BYTES[place.backend], free_bytes(place)
    number = int(job.share * free) // block_bytes - WORKING_BLOCKS
    if number < 1:
        needed = int((WORKING_BLOCKS + 1) * block_bytes / job.share)
        raise NotEnoughMemoryError(needed, free, f"of which a share of {job.share:g} is tested")
    if job.limit_bytes is not None:
        number = min(number, max(1, job.limit_bytes // block_bytes))
    words = block_bytes // WORD_BYTES
    return [torch.empty(words, dtype=torch.int64, device=place.torch_name) for _ in range(number)]


def _written_and_read(blocks: "list[torch.Tensor]", pattern: Pattern, seed: int) -> list[tuple[int, Json]]:
    """For each block with mismatches, their number and the first one."""
    found = []
    for number, block in enumerate(blocks):
        block.copy_(_expected(pattern, block, seed + number))
    for number, block in enumerate(blocks):
        expected = _expected(pattern, block, seed + number)
        wrong = block != expected
        if words := int(wrong.sum()):
            first = int(wrong.byte().argmax())
            detail: Json = {
                "pattern": pattern,
                "address": _hexadecimal(block.data_ptr() + first * WORD_BYTES),
                "offset_bytes": number * block.nbytes + first * WORD_BYTES,
                "expected": _hexadecimal(int(expected[first])),
                "found": _hexadecimal(int(block[first])),
                "words_in_block": words,
            }
            found.append((words, detail))
    return found


def _expected(pattern: Pattern, block: "torch.Tensor", seed: int) -> "torch.Tensor":
    """The words that `block` must hold: a walking single bit, its own addresses, or random numbers."""
    import torch  # noqa: PLC0415  only child processes may load torch

    if pattern == "address":
        start = block.data_ptr()
        return torch.arange(start, start + block.nbytes, WORD_BYTES, device=block.device)
    if pattern == "random":
        generator = torch.Generator(block.device).manual_seed(seed)
        return torch.empty_like(block).random_(-(1 << 63), None, generator=generator)
    bits = 8 * WORD_BYTES
    ones = torch.ones(bits, dtype=torch.int64, device=block.device)
    walking = (ones << torch.arange(bits, device=block.device).add_(seed).remainder_(bits)).repeat(len(block) // bits)
    return walking if pattern == "walking_ones" else walking.bitwise_not_()


def _hexadecimal(word: int) -> str:
    return f"{word % (1 << 8 * WORD_BYTES):#018x}"
