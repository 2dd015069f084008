"""The parameters and settings that `training` and `training_ddp` share: network, data and number of steps."""

import math
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from muster import Params, Section
from muster.home_path import HomePath
from muster.model import Data, Json
from muster_plugins.shared.device_choice import Choice

SETTINGS_NAME = "training"

Model = Literal["mlp", "resnet18", "resnet50", "transformer"]
DataSet = Literal["synthetic", "fashion_mnist", "cifar10", "cifar100", "imagenet"]
Precision = Literal["fp32", "bf16", "fp16"]


class TrainingSettings(Section):
    """The table `[plugins.training]`, which both checks use."""

    data_dir: HomePath | None = Field(None, description="Directory with the data sets as they were published")


class TaskParams(Params):
    """Parameters that are not set get a default that suits the backend: small networks and few steps on the CPU."""

    model: Model = Field("mlp", description="The network")
    data: DataSet = Field("synthetic", description="Data set to learn; all but synthetic are read from data_dir")
    precision: Precision = Field("fp32", description="bf16, fp16: automatic mixed precision, fp16 with a scaled loss")
    batch_size: int | None = Field(
        None,
        ge=2,
        le=65536,
        description="Samples per step and device; default 32 on GPUs (mlp 1024), 4 on the CPU (mlp 128)",
    )
    warmup: int | None = Field(
        None, ge=0, le=100_000, description="Steps before the measured ones; default 50 on GPUs, 5 on the CPU (mlp 10)"
    )
    iterations: int | None = Field(
        None, ge=4, le=100_000, description="Measured steps; default 100 on GPUs, 25 on the CPU (mlp 50)"
    )
    repeats: int = Field(
        1,
        ge=1,
        le=100,
        description="Trainings, one after the other; 2 or more are compared with each other",
    )
    seed: int = Field(1, ge=0, lt=1 << 53, description="Seed of the initial weights and of the choice of samples")
    device: Choice = Field("auto", description="cpu: use the CPU even on a node with GPUs")

    @model_validator(mode="after")
    def _fits_the_model(self) -> Self:
        if self.model == "transformer" and self.data != "synthetic":
            raise ValueError("the transformer reads sequences and trains on synthetic data only; images need a resnet")
        return self


class TrainingPlan(NamedTuple):
    """The parameters with a value for each option; `backend` is that of the device, cuda or cpu."""

    model: Model
    data: DataSet
    precision: Precision
    batch_size: int
    warmup: int
    iterations: int
    repeats: int
    seed: int
    backend: str

    @property
    def steps(self) -> int:
        """All steps of one training, including the warm-up."""
        return self.warmup + self.iterations

    @property
    def samples(self) -> int:
        """The number of samples in the measured steps of one training on one device."""
        return self.batch_size * self.iterations

    def facts(self) -> Json:
        """Facts that say which results are comparable."""
        return {
            "model": self.model,
            "data": self.data,
            "precision": self.precision,
            "batch_size_per_gpu": self.batch_size,
            "warmup": self.warmup,
            "iterations": self.iterations,
            "steps": self.steps,
            "repeats": self.repeats,
            "seed": self.seed,
        }


class LearningRule(NamedTuple):
    """Gradient descent: its rate, its momentum, and the length that all gradients together are shortened to."""

    rate: float
    momentum: float
    longest_gradient: float


def learning_rule(model: Model) -> LearningRule:
    """The rule of a model, the same on every backend.

    Without a limit, the loss of a transformer as large as that for GPUs rises; 1.0 is the limit of most published
    trainings of transformers (BERT, GPT-3). A network with batch normalisation needs none, and learns more slowly with
    one.
    """
    return LearningRule(rate=0.01, momentum=0.9, longest_gradient=1.0 if model == "transformer" else math.inf)


class RankReport(Data):
    """What ranks are compared by: their task, their kind of device, and the result and speed of their training alone.

    `fingerprint` is None and the speed 0 for a rank that could not train by itself.
    """

    task: str = Field(max_length=128)
    kind: str = Field(max_length=512)
    fingerprint: str | None = Field(None, max_length=128)
    step_time_s: float = Field(0.0, ge=0, allow_inf_nan=False)
    samples_per_s: float = Field(0.0, ge=0, allow_inf_nan=False)


class _Amount(NamedTuple):
    batch_size: int
    warmup: int
    iterations: int


_AMOUNTS = {"cuda": _Amount(32, 50, 100), "cpu": _Amount(4, 5, 25)}
_AMOUNTS_OF_MLP = {"cuda": _Amount(1024, 50, 100), "cpu": _Amount(128, 10, 50)}


def planned(params: TaskParams, backend: str) -> TrainingPlan:
    """The plan of `params` on devices of `backend`."""
    amount = (_AMOUNTS_OF_MLP if params.model == "mlp" else _AMOUNTS)[backend]
    return TrainingPlan(
        model=params.model,
        data=params.data,
        precision=params.precision,
        batch_size=params.batch_size or amount.batch_size,
        warmup=amount.warmup if params.warmup is None else params.warmup,
        iterations=params.iterations or amount.iterations,
        repeats=params.repeats,
        seed=params.seed,
        backend=backend,
    )
