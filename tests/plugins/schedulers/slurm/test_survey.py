"""What the coordinator is told about Slurm as a whole, and what keeps it from acting."""

import asyncio
import shutil

import pytest
from tests.alive import is_alive
from tests.cases import cases

from muster import Effect, Survey, Transition
from muster.config import Config, Settings
from muster.errors import SettingsError, Unavailable
from muster_plugins.schedulers.slurm.plugin import muster_configure, muster_survey, muster_transition
from muster_plugins.schedulers.slurm.scontrol import Failed, Scontrol

CORDON = {"id": "1-7", "node": "gpu1", "before": "IN_SERVICE", "after": "CORDONED", "reason": "r", "at": 1.0}


def config(scontrol="scontrol", **actor):
    table = {"scontrol": str(scontrol), "actor": {"enabled": True, **actor}}
    return Config(Settings.model_validate({"plugins": {"slurm": table}}))


async def surveyed(config) -> Survey:
    survey = await muster_survey(config)
    assert survey is not None
    return survey


@pytest.fixture
def stand_in(live, tmp_path):
    """A program in the place of scontrol."""

    def write(text):
        path = tmp_path / "scontrol"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def unprivileged(stand_in):
    """A scontrol of a user with no rights in Slurm, who may only read the files of the tests."""
    rights = "+dac_override,+dac_read_search"
    user = f"setpriv --reuid=65534 --inh-caps={rights} --ambient-caps={rights}"
    return stand_in(f'exec {user} {shutil.which("scontrol")} "$@"')


def logged(nodes, text):
    return (nodes.directory / "slurmctld.log").read_text().count(text)


async def test_it_lists_all_nodes(nodes):
    """Nodes in hidden partitions are included."""
    nodes.scontrol("update", "PartitionName=main", "Hidden=YES")
    survey = await surveyed(config())
    nodes.scontrol("update", "PartitionName=main", "Hidden=NO")
    assert [(node.node, node.mark, node.leaving) for node in survey.nodes] == [
        ("gpu1", "NONE", None),
        ("gpu2", "NONE", None),
    ]
    assert (survey.summary, survey.can_cordon) == ("Slurm", True)
    assert survey.nodes[0].labels == {"partition.slurm/main": "true"}


async def test_a_busy_slurmctld_may_take_its_time(nodes, stand_in):
    """A survey waits longer than a transition."""
    slow = stand_in(f'case "$*" in *nodes) sleep 4.2 ;; esac; exec {shutil.which("scontrol")} "$@"')
    assert [node.node for node in (await surveyed(config(slow))).nodes] == ["gpu1", "gpu2"]


async def test_who_may_act_is_asked_once(nodes, stand_in):
    """Each refusal is an error in slurmctld's log, so the right is not checked again and again."""
    scontrol = stand_in(f'exec {shutil.which("scontrol")} "$@"')
    before = logged(nodes, "update_node: node muster-asks")
    for _ in range(3):
        assert (await surveyed(config(scontrol))).can_cordon
    assert logged(nodes, "update_node: node muster-asks") == before + 1


async def test_a_user_who_may_not_act(nodes, unprivileged):
    """The survey reports Slurm's words and what to change; a transition FAILS."""
    survey = await surveyed(config(unprivileged))
    assert not survey.can_cordon
    assert survey.problem is not None
    assert "Invalid user id" in survey.problem
    assert "AdminLevel=Admin" in survey.problem
    outcome = await muster_transition(config(unprivileged), Transition.model_validate(CORDON))
    assert outcome is not None
    assert outcome.effect is Effect.FAILED
    assert "AdminLevel=Admin" in outcome.detail


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 3", "ended with 3"),
        ("echo hello", "shows no node: hello"),
        ("true", "no output"),
        ("echo 'NodeName=gpu1 Arch='; exit 0", "shows no node: NodeName=gpu1 Arch="),
        ("echo 'slurm_load_node error: Protocol' >&2; exit 1", "slurm_load_node error: Protocol"),
        ("printf '\\377'; kill -9 $$", "ended with -9|\ufffd"),
    ],
)
async def test_what_scontrol_says_is_read_with_care(stand_in, text, said):
    """Any other output is an error."""
    with pytest.raises(Failed, match=said):
        await surveyed(config(stand_in(text)))


@pytest.mark.usefixtures("live")
async def test_a_missing_scontrol_is_named():
    """With what to change."""
    with pytest.raises(Unavailable, match=r"^/nowhere/no-scontrol: No such file or directory; set plugins\.slurm"):
        await surveyed(config("/nowhere/no-scontrol"))


@pytest.mark.parametrize("text", ["wait", "exec yes", "exit"])
async def test_a_scontrol_that_hangs_is_ended(stand_in, tmp_path, text):
    """At its deadline, and with what it has started; nor is one listened to that never stops talking."""
    hangs = stand_in(f"sleep 600 & echo $! >{tmp_path / 'pid'}; {text}")
    with pytest.raises(Failed, match=r"slurmctld did not answer within 0\.2 s"):
        await Scontrol(str(hangs), 0.2).nodes()
    await end((tmp_path / "pid").read_text())


async def test_a_scontrol_without_an_answer_is_asked_again(stand_in, tmp_path):
    """Slurm 24.11 forgets a call now and then, and answers the next one at once."""
    forgets = stand_in(
        f"mkdir '{tmp_path}/asked' 2>/dev/null && exec sleep 600; echo 'NodeName=gpu1 State=IDLE Partitions=main'"
    )
    (node,) = await Scontrol(str(forgets), 4.0).nodes()
    assert node.name == "gpu1"


async def test_what_scontrol_says_while_it_waits_is_told(stand_in):
    """It waits a minute for a slurm.conf that is not there, and says so at once."""
    waits = stand_in("echo 'cannot stat file /etc/slurm/slurm.conf, retrying' >&2; exec sleep 600")
    with pytest.raises(Failed, match=r"within 1 s: cannot stat file /etc/slurm/slurm\.conf, retrying$"):
        await Scontrol(str(waits), 1.0).nodes()


async def test_a_scontrol_whose_caller_gives_up_is_ended(stand_in, tmp_path):
    """The coordinator stops waiting when it is stopped itself."""
    hangs = stand_in(f"echo $$ >{tmp_path / 'pid'}; exec sleep 600")
    asking = asyncio.create_task(Scontrol(str(hangs), 60).nodes())
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await end((tmp_path / "pid").read_text())


async def end(pid):
    """Returns when the process has ended: who kills one is not told when that is."""
    async with asyncio.timeout(10):
        while is_alive(int(pid)):
            await asyncio.sleep(0.01)


async def test_what_people_like_to_see_changes_nothing(nodes, monkeypatch):
    """How scontrol shows things comes from the environment as well."""
    nodes.scontrol("update", "NodeName=gpu1", "State=DRAIN", "Reason=bad fan")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%d %b")
    monkeypatch.setenv("SLURM_CLUSTERS", "elsewhere")
    monkeypatch.setenv("SCONTROL_ALL", "0")
    assert "bad fan (root@2" in (await surveyed(config())).nodes[0].detail


async def test_it_is_off_unless_it_is_enabled():
    """The settings of agents and coordinators may be one file."""
    off = Config(Settings.model_validate({"plugins": {"slurm": {"enabled": True}}}))
    assert await muster_survey(off) is None
    assert await muster_transition(off, Transition.model_validate(CORDON)) is None


@cases(
    ("actor", "said"),
    [
        ({"domain": "example"}, "domain"),
        ({"names": {"a": "gpu[1-2]"}}, "names"),
        ({"names": {"a": "gpu1", "b": "gpu1"}}, "must not give two nodes the same name"),
        ({"opt_out_feature": ""}, "opt_out_feature"),
        ({"reason": "x"}, "reason"),
    ],
)
def test_wrong_settings_are_refused(actor, said):
    """And named."""
    with pytest.raises(SettingsError, match=said):
        muster_configure(config(**actor))
