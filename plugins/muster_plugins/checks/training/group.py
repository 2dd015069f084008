"""Training by all ranks of a process group. Import this only in child processes, because it imports torch.

Every rank trains at least twice, with the same number of steps. First each rank trains alone on the same batches and
sends nothing in between. This shows speed and bits of each device without the others, and makes ranks comparable. Then
all ranks train together: each begins with another batch, and DistributedDataParallel averages the gradients. The
median step together minus the median step alone is the time of collectives that computation does not hide; it includes
waiting for slower ranks.
"""

from statistics import median
from typing import Annotated, NamedTuple

import torch
import torch._dynamo  # DistributedDataParallel would import it later, which takes a second while other ranks wait
import torch.distributed as dist
from pydantic import Field
from torch import nn

from muster_plugins.checks.training.data import Task
from muster_plugins.checks.training.loop import Trained, TrainingLoop, software, train
from muster_plugins.checks.training.problems import TrainingProblem
from muster_plugins.checks.training.task import RankReport
from muster_plugins.shared.torch_device import Place
from muster_plugins.shared.torch_group import RankGroup

_Ending = tuple[Annotated[str, Field(max_length=128)], Annotated[float, Field(gt=0, allow_inf_nan=False)]]
"""The checksum of a rank's weights, and the seconds that its training took."""


class GroupTraining(NamedTuple):
    """One training of all ranks: this rank's result, the mean loss of each step over all ranks, and the longest time.

    `weights` are the checksums of the final weights, by rank.
    """

    own: Trained
    losses: list[float]
    total_s: float
    weights: list[str]


def train_alone(place: Place, task: Task, group: RankGroup) -> tuple[Trained | TrainingProblem, list[RankReport]]:
    """The result of this rank's training by itself, and the reports of all ranks on theirs."""
    alone = train(place, task)
    return alone, group.all_gather("alone", _report(place, task, alone), RankReport)


def _report(place: Place, task: Task, alone: Trained | TrainingProblem) -> RankReport:
    kind = f"{place.model}, {software(place.backend)}"
    if isinstance(alone, TrainingProblem):
        return RankReport(task=task.checksum, kind=kind)
    return RankReport(
        task=task.checksum,
        kind=kind,
        fingerprint=alone.checksum,
        step_time_s=median(alone.seconds),
        samples_per_s=task.plan.samples / alone.total_s,
    )


def train_together(place: Place, task: Task, group: RankGroup) -> list[GroupTraining]:
    """The trainings of all ranks together, as many as the plan has."""
    return [_train_together(place, task, group) for _ in range(task.plan.repeats)]


def _train_together(place: Place, task: Task, group: RankGroup) -> GroupTraining:

    def in_parallel(network: nn.Module) -> nn.Module:
        device_ids = [torch.device(place.torch_name)] if place.backend == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(network, device_ids=device_ids)

    own = TrainingLoop(place, task, in_parallel, first=group.rank).run()
    losses = torch.tensor(own.losses, dtype=torch.float64, device=place.torch_name)
    dist.all_reduce(losses)
    endings = group.all_gather("together", (own.weights, own.total_s), _Ending)
    return GroupTraining(
        own=own,
        losses=losses.div_(len(endings)).tolist(),
        total_s=max(total_s for _, total_s in endings),
        weights=[weights for weights, _ in endings],
    )
