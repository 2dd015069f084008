"""Measures on one device how fast a decoder generates tokens, and whether they are right.

A generation has two parts, which load a device differently. The prefill reads the whole prompt at once: large matrix
products. Decoding adds one token after the other to each sequence, and reads all weights and the cache for each: memory
bandwidth. The same generation is repeated, and must end with the same bits each time.

The logits of the last token are also computed without the cache, from the prompt with all generated tokens. That takes
other kernels and other shapes, so the two results differ by rounding. They differ by more if a device makes a mistake,
even one that it always makes.
"""

import hashlib
from statistics import median
from typing import NamedTuple

import torch

from muster_plugins.checks.inference.decoder import Decoder
from muster_plugins.checks.inference.plan import GenerationPlan
from muster_plugins.shared.torch_device import Place, time_each

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Generated(NamedTuple):
    """Median seconds of the prefill, of all decoding steps and of one, and what came of it.

    `changed` generations ended with other bits than the first. `cache_error` is the largest difference between logits
    with and without the cache, as a share of the largest logit; NaN if they are not finite.
    """

    prefill_s: float
    decode_s: float
    token_s: float
    changed: int
    cache_error: float
    fingerprint: str


class _Generation(NamedTuple):
    prefill_s: float
    token_s: list[float]
    tokens: torch.Tensor
    logits: torch.Tensor

    @property
    def fingerprint(self) -> str:
        """The bits of the tokens and of the last logits as 16 hexadecimal digits."""
        digest = hashlib.sha256(self.tokens.cpu().numpy().data)
        digest.update(self.logits.cpu().view(torch.uint8).numpy().data)
        return digest.hexdigest()[:16]


@torch.inference_mode()
def generate(place: Place, plan: GenerationPlan) -> Generated:
    """Carries out the plan on the device. Raises RuntimeError if the device fails or its memory is too small."""
    if place.backend == "cpu":
        torch.set_num_threads(1)  # The sums do not depend on the number of cores.
    generator = torch.Generator(place.torch_name).manual_seed(plan.seed)
    positions = plan.prompt_tokens + plan.new_tokens
    decoder = Decoder(place.backend, _DTYPES[plan.precision], positions, generator)
    prompt = torch.randint(
        decoder.vocabulary, (plan.batch_size, plan.prompt_tokens), generator=generator, device=place.torch_name
    )
    _generation(place, plan, decoder, prompt)  # Loads kernels and raises clocks.
    generations = [_generation(place, plan, decoder, prompt) for _ in range(plan.repeats)]
    first, *_ = generations
    fingerprints = [each.fingerprint for each in generations]
    return Generated(
        prefill_s=median(each.prefill_s for each in generations),
        decode_s=median(sum(each.token_s) for each in generations),
        token_s=median(seconds for each in generations for seconds in each.token_s),
        changed=sum(fingerprint != fingerprints[0] for fingerprint in fingerprints),
        cache_error=_cache_error(decoder, first),
        fingerprint=fingerprints[0],
    )


def _generation(place: Place, plan: GenerationPlan, decoder: Decoder, prompt: torch.Tensor) -> _Generation:
    """One greedy generation. Nothing waits for the device between two tokens."""
    cache = decoder.empty_cache(plan.batch_size)
    tokens = torch.cat([prompt, prompt.new_zeros(plan.batch_size, plan.new_tokens)], dim=1)
    end = plan.prompt_tokens
    logits = torch.empty(0)

    def prefill() -> None:
        nonlocal logits
        logits = decoder(prompt, cache, 0)

    def add_token() -> None:
        nonlocal logits, end
        tokens[:, end] = logits.argmax(-1)
        logits = decoder(tokens[:, end : end + 1], cache, end)
        end += 1

    (prefill_s,) = time_each(place, prefill, 1)
    token_s = time_each(place, add_token, plan.new_tokens)
    return _Generation(prefill_s, token_s, tokens, logits)


def _cache_error(decoder: Decoder, generation: _Generation) -> float:
    without = decoder(generation.tokens, decoder.empty_cache(len(generation.tokens)), 0).float()
    difference = (generation.logits.float() - without).abs().max() / without.abs().max()
    return float(difference)
