"""Acts on transitions in Slurm."""

from muster import ActionOutcome, Effect, Transition
from muster_plugins.schedulers.slurm.decision import decide
from muster_plugins.schedulers.slurm.names import Names
from muster_plugins.schedulers.slurm.scontrol import Failed, Scontrol
from muster_plugins.schedulers.slurm.settings import SlurmActorSettings


async def act(scontrol: Scontrol, settings: SlurmActorSettings, transition: Transition) -> ActionOutcome:
    """Drains or resumes the node as the transition requires, or says what prevents it."""
    name = Names(settings.domain, settings.names).in_slurm(transition.node)
    if name is None:
        detail = f"Slurm has no node for {transition.node}, by plugins.slurm.actor.domain and names"
        return ActionOutcome(effect=Effect.LEFT, detail=detail)
    try:
        node = await scontrol.node(name)
        if node is None:
            return ActionOutcome(effect=Effect.LEFT, detail=f"Slurm has no node {name}")
        step = decide(node, transition, settings.opt_out_feature)
        if step.update and transition.dry_run:
            return ActionOutcome(effect=Effect.WOULD, detail=scontrol.update_line(name, step.update))
        if step.update:
            await scontrol.update(name, step.update)
    except Failed as failure:
        return ActionOutcome(effect=Effect.FAILED, detail=f"{name}: {failure}")
    return ActionOutcome(effect=step.effect, detail=f"{name} {step.detail}")
