"""A small decoder of a language model with a cache of keys and values. Import this only in child processes: torch.

It is untrained: a device takes as long for random weights as for trained ones. On GPUs it has few layers, each as wide
as those of a model with 70 billion parameters. A layer then keeps the device busy for longer than the host needs to
launch it, so the device decides the speed, also where one process launches the work of eight devices.
"""

from typing import NamedTuple

import torch
from torch.nn import functional

_VOCABULARY = 32_768


class _Sizes(NamedTuple):
    layers: int
    width: int
    heads: int
    feedforward: int
    vocabulary: int


_SIZES = {
    "cuda": _Sizes(layers=4, width=8192, heads=64, feedforward=28_672, vocabulary=_VOCABULARY),
    "cpu": _Sizes(layers=2, width=64, heads=4, feedforward=128, vocabulary=256),
}


class _Layer(NamedTuple):
    """The weights of a layer, each with one row for each output."""

    attention_in: torch.Tensor
    attention_out: torch.Tensor
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


class KeyValueCache(NamedTuple):
    """Keys and values of the tokens so far, by layer, sequence, head and position."""

    keys: torch.Tensor
    values: torch.Tensor


class Decoder:
    """A decoder with room for `positions` tokens in a sequence; the generator gives its weights and device."""

    def __init__(self, backend: str, dtype: torch.dtype, positions: int, generator: torch.Generator) -> None:
        self._sizes = sizes = _SIZES[backend]
        self._dtype, self._positions, self._generator = dtype, positions, generator
        width, inner = sizes.width, sizes.feedforward
        self._embedding = self._random(sizes.vocabulary, width)
        self._position = self._random(positions, width)
        self._layers = [
            _Layer(
                attention_in=self._random(3 * width, width),
                attention_out=self._random(width, width),
                gate=self._random(inner, width),
                up=self._random(inner, width),
                down=self._random(width, inner),
            )
            for _ in range(sizes.layers)
        ]

    @property
    def vocabulary(self) -> int:
        """How many different tokens there are."""
        return self._sizes.vocabulary

    def empty_cache(self, sequences: int) -> KeyValueCache:
        """A cache for this number of sequences."""
        sizes = self._sizes
        shape = (sizes.layers, sequences, sizes.heads, self._positions, sizes.width // sizes.heads)
        device = self._generator.device
        return KeyValueCache(*(torch.zeros(shape, dtype=self._dtype, device=device) for _ in range(2)))

    def __call__(self, tokens: torch.Tensor, cache: KeyValueCache, start: int) -> torch.Tensor:
        """The logits that follow the last of `tokens`, which stand from position `start` on; fills the cache.

        `start` is 0 for a prompt. Later calls have one token for each sequence.
        """
        end = start + tokens.shape[1]
        stream = self._embedding[tokens] + self._position[start:end]
        for layer, keys, values in zip(self._layers, *cache, strict=True):
            stream = stream + self._attended(stream, layer, KeyValueCache(keys, values), start)
            stream = stream + _fed_forward(stream, layer)
        return functional.linear(_normalised(stream[:, -1]), self._embedding)

    def _random(self, rows: int, columns: int) -> torch.Tensor:
        """Weights with which a layer's output varies as much as its input."""
        device = self._generator.device
        weights = torch.randn(rows, columns, generator=self._generator, dtype=self._dtype, device=device)
        return weights.div_(columns**0.5)

    def _attended(self, stream: torch.Tensor, layer: _Layer, cache: KeyValueCache, start: int) -> torch.Tensor:
        sequences, tokens, width = stream.shape
        end = start + tokens
        queries_keys_values = functional.linear(_normalised(stream), layer.attention_in)
        by_head = queries_keys_values.view(sequences, tokens, 3, self._sizes.heads, -1).permute(2, 0, 3, 1, 4)
        queries, cache.keys[:, :, start:end], cache.values[:, :, start:end] = by_head
        attended = functional.scaled_dot_product_attention(
            queries, cache.keys[:, :, :end], cache.values[:, :, :end], is_causal=tokens > 1
        )
        return functional.linear(attended.transpose(1, 2).reshape(sequences, tokens, width), layer.attention_out)


def _fed_forward(stream: torch.Tensor, layer: _Layer) -> torch.Tensor:
    normalised = _normalised(stream)
    gated = functional.silu(functional.linear(normalised, layer.gate)) * functional.linear(normalised, layer.up)
    return functional.linear(gated, layer.down)


def _normalised(stream: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(stream, stream.shape[-1:])
