"""The parameters of `inference`, and the plan that follows from them: what is generated."""

from typing import Literal, NamedTuple

from pydantic import Field

from muster import Params
from muster_plugins.shared.device_choice import Choice


class InferenceParams(Params):
    """Parameters that are not set get a default that suits the backend."""

    precision: Literal["fp32", "bf16", "fp16"] | None = Field(
        None, description="Number format of weights and cache; default bf16 on GPUs, fp32 on the CPU"
    )
    batch_size: int | None = Field(
        None, ge=1, le=4096, description="Sequences at the same time; default 8 on GPUs, 2 on the CPU"
    )
    prompt_tokens: int | None = Field(
        None, ge=2, le=131_072, description="Tokens of each prompt; default 512 on GPUs, 16 on the CPU"
    )
    new_tokens: int | None = Field(
        None, ge=2, le=131_072, description="Tokens that each sequence gets; default 128 on GPUs, 8 on the CPU"
    )
    repeats: int = Field(3, ge=1, le=1000, description="Generations; the result is their median")
    seed: int = Field(1, ge=0, lt=1 << 63, description="Seed of weights and prompts")
    device: Choice = Field("auto", description="cpu: use the CPU even on a node with GPUs")


class _GenerationDefaults(NamedTuple):
    precision: str
    batch_size: int
    prompt_tokens: int
    new_tokens: int


_DEFAULTS = {"cuda": _GenerationDefaults("bf16", 8, 512, 128), "cpu": _GenerationDefaults("fp32", 2, 16, 8)}


class GenerationPlan(NamedTuple):
    """What is generated: sequences, tokens of the prompt and new tokens of each, and how often it is repeated."""

    precision: str
    batch_size: int
    prompt_tokens: int
    new_tokens: int
    repeats: int
    seed: int

    @property
    def computation(self) -> str:
        """The name of what is computed: plans of the same name give the same bits."""
        return f"{self.precision} {self.batch_size}x({self.prompt_tokens}+{self.new_tokens}) seed {self.seed}"


def planned(params: InferenceParams, backend: str) -> GenerationPlan:
    """The plan of `params` on devices of `backend`."""
    usual = _DEFAULTS[backend]
    return GenerationPlan(
        precision=params.precision or usual.precision,
        batch_size=params.batch_size or usual.batch_size,
        prompt_tokens=params.prompt_tokens or usual.prompt_tokens,
        new_tokens=params.new_tokens or usual.new_tokens,
        repeats=params.repeats,
        seed=params.seed,
    )
