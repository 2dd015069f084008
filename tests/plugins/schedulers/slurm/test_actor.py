"""Taking nodes out of a real Slurm and letting them back, beside people who do the same."""

import re
import time

import pytest

from muster import Effect, Transition
from muster.config import Config, Settings
from muster_plugins.schedulers.slurm.plugin import muster_survey, muster_transition


def config(**settings):
    actor = {"enabled": True, **settings.pop("actor", {})}
    return Config(Settings.model_validate({"plugins": {"slurm": {"actor": actor, **settings}}}))


def transition(after="CORDONED", **changed):
    told = {"id": "1-7", "node": "gpu1", "before": "IN_SERVICE", "after": after, "reason": "ecc on device 0", "at": 1.0}
    return Transition.model_validate(told | changed)


async def tell(after="CORDONED", *, settings=None, **changed):
    outcome = await muster_transition(config(**settings or {}), transition(after, **changed))
    assert outcome is not None
    return outcome


async def surveyed(node="gpu1", **settings):
    survey = await muster_survey(config(**settings))
    assert survey is not None
    (found,) = [one for one in survey.nodes if one.node == node]
    return found


def reason(nodes, node="gpu1"):
    """Without who wrote it and when."""
    return re.sub(r" \[\S+@\S+\]$", "", nodes.node(node).get("Reason", ""))


def state(nodes, node="gpu1"):
    """Its state and flags, without that Slurm plans a job there: that of an earlier test may be planned for a while."""
    return set(nodes.node(node)["State"].split("+")) - {"PLANNED"}


def by_hand(nodes, *changes, node="gpu1"):
    nodes.scontrol("update", f"NodeName={node}", *changes)


async def test_a_node_goes_and_comes_back(nodes):
    """With a reason for people. Afterwards no trace is left but the reason, which newer versions of Slurm keep."""
    assert (await tell()).effect is Effect.DONE
    assert state(nodes) == {"IDLE", "DRAIN"}
    assert reason(nodes) == "muster: ecc on device 0 [1-7]"
    assert (await surveyed()).transition == "1-7"
    assert (await tell("IN_SERVICE", id="1-8")).effect is Effect.DONE
    assert "DRAIN" not in state(nodes)
    assert "Comment" not in nodes.node("gpu1")
    assert (await surveyed("gpu2")).mark == (await surveyed()).mark == "NONE"


async def test_a_new_node_waits_until_it_is_accepted(nodes):
    """And each further step that leaves it out gives the drain its own reason."""
    await tell("ACCEPTING")
    assert reason(nodes) == "muster: ecc on device 0 [1-7]"
    await tell("PROBATION", id="1-8", reason="tested again")
    assert reason(nodes) == "muster: retest: tested again [1-8]"
    assert (await surveyed()).transition == "1-8"


UUID = "GPU-5c1d2e3f-1111-2222-3333-444455556666"
BUS = {"code": "kernel_log.xid", "device": 3, "uuid": UUID, "xid": 79, "summary": "XID 79, GPU has fallen off the bus"}


def listed(nodes, most):
    """The one reason in Slurm's list, so many characters of it."""
    return nodes.run("sinfo", "-R", "-h", "-o", f"%{most}E").stdout.strip()


async def test_a_list_of_reasons_shows_the_cause(nodes):
    """`sinfo -R` shows 20 characters by default: the error and the GPU, also while the node is tested again."""
    for after, event in (("CORDONED", "t1795393028-1"), ("PROBATION", "t1795393028-2")):
        assert (await tell(after, id=event, causes=[BUS], action="REBOOT_NODE")).effect is Effect.DONE
        assert listed(nodes, 20).rstrip(":,") == "muster: XID 79 GPU3"
        assert UUID in listed(nodes, 120)
        assert ((await surveyed()).mark, (await surveyed()).transition) == ("OURS", event)
    assert reason(nodes).endswith(f"{UUID} [t1795393028-2]")


async def test_a_drain_of_an_earlier_version_is_ours(nodes):
    """It stays as it is, gets the new form with the next step, and is uncordoned."""
    earlier = ("State=DRAIN", "Reason=muster:1-7 cordoned: nvml.xid: A GPU is lost", "Comment=[muster:1-7]")
    by_hand(nodes, *earlier)
    assert ((await surveyed()).mark, (await surveyed()).transition) == ("OURS", "1-7")
    assert (await tell()).detail == "gpu1 is drained already"
    assert reason(nodes) == "muster:1-7 cordoned: nvml.xid: A GPU is lost"
    await tell("PROBATION", id="1-8", causes=[BUS])
    assert reason(nodes).startswith("muster: XID 79 GPU3, retest: ")
    by_hand(nodes, *earlier)
    assert (await tell("IN_SERVICE", id="1-9")).effect is Effect.DONE
    assert "DRAIN" not in state(nodes)


async def test_told_twice_is_done_once(nodes):
    """The time of the reason in Slurm shows that nothing was written again."""
    await tell()
    before = nodes.node("gpu1")
    assert (await tell()).detail == "gpu1 is drained already"
    assert nodes.node("gpu1") == before
    for _ in range(2):
        assert (await tell("IN_SERVICE", id="1-8")).effect is Effect.DONE


async def test_a_job_that_runs_is_not_disturbed(nodes, eventually):
    """The node is drained when it has ended, and the next job waits."""
    job, next_job = (nodes.sbatch("--nodelist=gpu1", "--exclusive", "--wrap", "sleep 600") for _ in range(2))
    eventually(lambda: nodes.job(job)["JobState"] == "RUNNING", "a job that runs")
    assert "its jobs run to their end" in (await tell()).detail
    assert state(nodes) == {"ALLOCATED", "DRAIN"}
    assert nodes.job(job)["JobState"] == "RUNNING"
    nodes.scontrol("update", f"JobId={next_job}", "Priority=4000000000")
    nodes.run("scancel", job)
    eventually(lambda: state(nodes) == {"IDLE", "DRAIN"}, "a node without jobs")
    assert nodes.job(next_job)["JobState"] == "PENDING"
    await tell("IN_SERVICE", id="1-8")
    eventually(lambda: nodes.job(next_job)["JobState"] == "RUNNING", "the next job")


async def test_an_operators_drain_before_ours_stays(nodes):
    """Both transitions leave it, with its text and its writer."""
    by_hand(nodes, "State=DRAIN", "Reason=bad fan")
    for after in ("CORDONED", "IN_SERVICE"):
        outcome = await tell(after)
        assert outcome.effect is Effect.LEFT
        assert outcome.detail.startswith("gpu1 IDLE+DRAIN: bad fan (root@20")
        assert reason(nodes) == "bad fan"
    assert (await surveyed()).mark == "FOREIGN"
    by_hand(nodes, "State=RESUME")
    assert (await surveyed()).mark == "NONE"
    assert (await tell()).effect is Effect.DONE


async def test_an_operators_drain_after_ours_stays(nodes):
    """The drain is then the operator's: we remove our mark, so that a resume later is not taken for one of ours."""
    await tell()
    by_hand(nodes, "Reason=bad fan")
    assert (await surveyed()).mark == "FOREIGN"
    assert (await tell("IN_SERVICE", id="1-8")).effect is Effect.LEFT
    assert (state(nodes), reason(nodes)) == ({"IDLE", "DRAIN"}, "bad fan")
    by_hand(nodes, "State=RESUME")
    assert (await surveyed()).mark == "NONE"


async def test_an_operator_who_resumes_our_drain_has_the_last_word(nodes):
    """The same transition does not drain again; a later one does, or takes the mark away."""
    await tell()
    by_hand(nodes, "State=RESUME")
    found = await surveyed()
    assert (found.mark, found.transition) == ("UNDONE", "1-7")
    assert (await tell()).effect is Effect.LEFT
    assert (await tell("IN_SERVICE", id="1-8")).effect is Effect.DONE
    assert (await surveyed()).mark == "NONE"
    assert (await tell(id="1-9")).effect is Effect.DONE


async def test_what_people_write_beside_a_node_is_kept(nodes):
    """Signs that a shell or scontrol might take for its own included."""
    comment = "RMA 17; $(reboot) `x` State=IDLE \"quoted\" 'too'"
    by_hand(nodes, f"Comment={comment}")
    await tell(reason='$(reboot); `x` | "quoted" NodeName=gpu2 State=DOWN')
    assert state(nodes, "gpu2") == {"IDLE"}
    assert nodes.scontrol("--oneliner", "show", "node", "gpu1").count(f"Comment={comment} [muster:1-7]") == 1
    await tell("IN_SERVICE", id="1-8")
    assert nodes.scontrol("--oneliner", "show", "node", "gpu1").strip().endswith(f"Comment={comment}")


async def test_a_node_that_slurm_does_not_hear_of_is_drained(nodes):
    """Otherwise it would return to service as soon as Slurm hears of it; a node that a person has set down stays."""
    by_hand(nodes, "State=DOWN", "Reason=Not responding")
    assert (await tell()).effect is Effect.DONE
    assert state(nodes) == {"DOWN", "DRAIN"}
    await tell("IN_SERVICE", id="1-8")
    by_hand(nodes, "State=DOWN", "Reason=pulled")
    assert (await tell(id="1-9")).effect is Effect.LEFT
    assert "DRAIN" not in state(nodes)
    assert reason(nodes) == "pulled"


async def test_a_reboot_that_an_operator_has_asked_for_is_not_called_off(nodes, eventually):
    """It waits for a job when we drain the node and let it back; what was written beside it is kept until then.

    Afterwards Slurm knows of no reason, as after a drain and a resume by hand.
    """
    job = nodes.sbatch("--nodelist=gpu1", "--wrap", "sleep 600")
    eventually(lambda: nodes.job(job)["JobState"] == "RUNNING", "a job that runs")
    nodes.scontrol("reboot", "reason=new kernel", "gpu1")
    assert (await surveyed()).leaving == "Slurm plans to reboot it"
    await tell()
    assert reason(nodes) == "muster: ecc on device 0; before: new kernel [1-7]"
    await tell("PROBATION", id="1-8")
    assert reason(nodes) == "muster: retest: ecc on device 0; before: new kernel [1-8]"
    await tell("IN_SERVICE", id="1-9")
    assert "REBOOT_REQUESTED" in nodes.node("gpu1")["State"]


async def test_a_node_that_is_rebooted_while_it_is_drained_is_still_ours(nodes, eventually):
    """Slurm appends to our reason that the reboot was issued."""
    await tell()
    nodes.scontrol("reboot", "gpu1")
    eventually(lambda: "REBOOT_ISSUED" in state(nodes), "the reboot")
    assert reason(nodes) == "muster: ecc on device 0 [1-7] : reboot issued"
    assert (await surveyed()).mark == "OURS"
    nodes.boot("gpu1")
    eventually(lambda: state(nodes) == {"IDLE", "DRAIN"}, "the node to be back")
    assert (await surveyed()).mark == "OURS"
    assert (await tell("PROBATION", id="1-8")).effect is Effect.DONE
    assert reason(nodes) == "muster: retest: ecc on device 0 [1-8]"
    assert (await tell("IN_SERVICE", id="1-9")).effect is Effect.DONE
    assert "DRAIN" not in state(nodes)


@pytest.mark.parametrize("name", ["gpu9", "ALL", "gpu1.example"])
async def test_a_node_that_slurm_does_not_have(nodes, name):
    """ALL is not a node, either."""
    outcome = await tell(node=name)
    assert (outcome.effect, outcome.detail) == (Effect.LEFT, f"Slurm has no node {name}")
    assert state(nodes) == state(nodes, "gpu2") == {"IDLE"}


async def test_a_list_of_nodes_is_no_node(nodes):
    """A wrong name in the settings would drain several nodes, so each name must be a single node."""
    unchecked = Transition.model_construct(**dict(transition()) | {"node": "gpu[1-2]"})
    outcome = await muster_transition(config(), unchecked)
    assert outcome is not None
    assert (outcome.effect, outcome.detail) == (Effect.LEFT, "Slurm has no node gpu[1-2]")
    assert state(nodes) == state(nodes, "gpu2") == {"IDLE"}


async def test_slurm_may_call_a_node_otherwise(nodes):
    """The settings map names by a domain or one by one."""
    for node, actor in (("gpu1.example", {"domain": ".example"}), ("first", {"names": {"first": "gpu1"}})):
        assert (await tell(node=node, settings={"actor": actor})).effect is Effect.DONE
        assert (await surveyed(node, actor=actor)).mark == "OURS"
        await tell("IN_SERVICE", id="1-8", node=node, settings={"actor": actor})


async def test_a_wrong_domain_is_seen(nodes):
    """At the first node that is to go, in a dry run already."""
    outcome = await tell(settings={"actor": {"domain": ".example"}}, dry_run=True)
    assert outcome.effect is Effect.LEFT
    assert outcome.detail == "Slurm has no node for gpu1, by plugins.slurm.actor.domain and names"


async def test_a_node_that_has_opted_out_is_left_alone(nodes):
    """By a feature, which can be set while Slurm runs."""
    by_hand(nodes, "AvailableFeatures=h100,muster_opt_out")
    assert (await surveyed()).opted_out
    assert (await tell()).effect is Effect.LEFT
    assert state(nodes) == {"IDLE"}


async def test_a_dry_run_says_what_it_would_do(nodes):
    """As a line that a shell takes, and changes nothing."""
    outcome = await tell(dry_run=True)
    assert outcome.effect is Effect.WOULD
    assert outcome.detail == (
        "scontrol update NodeName=gpu1 State=DRAIN 'Reason=muster: ecc on device 0 [1-7]' 'Comment=[muster:1-7]'"
    )
    assert state(nodes) == {"IDLE"}
    assert (await tell("IN_SERVICE", dry_run=True)).effect is Effect.DONE


async def test_slurmctld_restarts_in_the_middle(nodes, eventually):
    """What it does not answer has failed and is tried again; marks of both kinds are still there afterwards."""
    await tell()
    await tell(node="gpu2")
    by_hand(nodes, "State=RESUME", node="gpu2")
    nodes.stop_slurmctld()
    began = time.monotonic()
    outcome = await tell("IN_SERVICE", id="1-8")
    assert (outcome.effect, outcome.detail) == (Effect.FAILED, "gpu1: slurmctld did not answer within 4 s")
    assert time.monotonic() - began < 8
    nodes.start_slurmctld()
    eventually(lambda: nodes.node("gpu1").get("State") == "IDLE+DRAIN", "a node that is known")
    assert ((await surveyed()).mark, (await surveyed("gpu2")).mark) == ("OURS", "UNDONE")
    assert (await tell("IN_SERVICE", id="1-8")).effect is Effect.DONE
    assert "DRAIN" not in state(nodes)
