"""The actor of the plugin `script`, with real executables."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.alive import is_alive
from tests.cases import cases

from muster.config import Config, Settings
from muster.errors import SettingsError
from muster.model import ServiceState
from muster.plugins import GROUP, HookAnswer, load
from muster.transition import Effect, Transition
from muster_plugins.shared.transition_document import transition_document

OUT = Transition(
    id="t1",
    node="gpu-0042",
    before=ServiceState.IN_SERVICE,
    after=ServiceState.CORDONED,
    reason="fell off the bus",
    at=1_700_000_000.0,
)
GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "webhooks.md"


class Actor:
    """The plugin with an executable, as the coordinator calls it."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        table = {"actor": {"path": str(path), **settings}}
        config = Config(Settings.model_validate({"fleet": "prod", "plugins": {"script": table}}))
        self.path = path
        self._plugins = load(config, entry_points(group=GROUP, name="script"))

    async def answer(self, hook: str, **arguments) -> HookAnswer:
        (answer,) = await self._plugins.call_each(hook, 10, **arguments)
        return answer

    async def tell(self, transition: Transition = OUT) -> Any:
        answer = await self.answer("muster_transition", transition=transition)
        assert answer.error is None
        return answer.value


@pytest.fixture
def actor(live: None, tmp_path) -> Callable[..., Actor]:
    """Makes an executable of a text, which is a shell script unless it says otherwise."""

    def make(text: str, **settings) -> Actor:
        path = tmp_path / "changed"
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return Actor(path, settings)

    return make


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_it_gets_the_transition(actor, tmp_path, monkeypatch):
    """As JSON on stdin; of the environment only what holds no secret."""
    monkeypatch.setenv("MUSTER_STORE__URL", "postgresql://user:secret@db/muster")
    monkeypatch.setenv("TZ", "UTC")
    outcome = await actor(f"cat > {tmp_path}/given; env > {tmp_path}/env; pwd >> {tmp_path}/env; echo closed").tell()
    assert (outcome.effect, outcome.detail) == (Effect.DONE, "exit code 0: closed")
    assert json.loads((tmp_path / "given").read_text()) == transition_document("prod", OUT)
    *environment, directory = (tmp_path / "env").read_text().splitlines()
    assert {"MUSTER_NODE=gpu-0042", "TZ=UTC", f"PATH={os.environ['PATH']}"} <= {*environment}
    assert "secret" not in " ".join(environment)
    assert directory == "/"


@pytest.mark.parametrize(
    ("text", "effect", "detail"),
    [
        ("exit 0", "DONE", "exit code 0"),
        ("echo one; echo two; echo; exit 0", "DONE", "exit code 0: two"),
        ("echo not ours; exit 77", "LEFT", "exit code 77: not ours"),
        ("echo no route; exit 75", "FAILED", "exit code 75: no route"),
        ("echo on stdout; echo on stderr >&2; exit 1", "FAILED", "exit code 1: on stderr"),
        ("exit 255", "FAILED", "exit code 255"),
        ("echo halfway; kill -SEGV $$", "FAILED", "killed by signal 11: halfway"),
        (r"printf 'a\033[31mb\tc\377'", "DONE", "exit code 0: a [31mb c�"),
    ],
)
async def test_its_end_is_the_outcome(actor, text, effect, detail):
    """The exit code is the effect; the last line is the detail, without control characters."""
    outcome = await actor(text).tell()
    assert (outcome.effect, outcome.detail) == (effect, detail)


async def test_a_script_that_the_kernel_cannot_run(actor):
    """Such as one whose interpreter is not installed."""
    without = actor("#!/nonexistent/sh\n")
    outcome = await without.tell()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail == f"{without.path} cannot be started: No such file or directory"


async def test_a_script_that_never_stops_talking(actor):
    """Neither the output nor a line of it fills the memory, and the last line is used."""
    outcome = await actor("head -c 20000000 /dev/zero | tr '\\0' x; echo; head -c 9999 /dev/zero | tr '\\0' y").tell()
    assert outcome.effect is Effect.DONE
    assert outcome.detail == f"exit code 0: {'y' * 500}"


async def test_a_script_that_does_not_read(actor):
    """A transition that is longer than a pipe does not block."""
    outcome = await actor("exit 0").tell(OUT.model_copy(update={"reason": "x" * 1_000_000}))
    assert outcome.effect is Effect.DONE


async def test_others_go_on_while_a_script_runs(actor, tmp_path):
    """It waits here for something that only the test does, in the same event loop."""
    waiting = actor(f"touch {tmp_path}/here; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo went")
    run = asyncio.create_task(waiting.tell())
    await until((tmp_path / "here").exists)
    (tmp_path / "go").touch()
    assert (await run).detail == "exit code 0: went"


async def test_a_script_that_hangs_is_killed_with_all_that_it_started(actor, tmp_path):
    """At its deadline."""
    outcome = await actor(f"sleep 600 & echo $! > {tmp_path}/child; echo started; wait", timeout_s=0.5).tell()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail == "killed, as it had not ended within 0.5 s: started"
    child = int((tmp_path / "child").read_text())
    await until(lambda: not is_alive(child))


async def test_what_a_script_leaves_behind_is_killed(actor, tmp_path):
    """Leftover processes do not block although they hold the output open."""
    outcome = await actor(f"sleep 600 & echo $! > {tmp_path}/child; echo done").tell()
    assert (outcome.effect, outcome.detail) == (Effect.DONE, "exit code 0: done")
    child = int((tmp_path / "child").read_text())
    await until(lambda: not is_alive(child))


async def test_what_has_left_the_group_holds_nobody_up(actor, tmp_path):
    """A daemon that a script starts lives on, and may hold the script's output open."""
    pid = tmp_path / "pid"
    daemon = f"setsid sh -c 'echo $$ > {pid}; exec sleep 600' & until [ -s {pid} ]; do sleep 0.01; done"
    outcome = await actor(f"{daemon}; echo done").tell()
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert (outcome.effect, outcome.detail) == (Effect.DONE, "exit code 0: done")


async def test_a_run_that_is_cancelled_leaves_nothing_behind(actor, tmp_path):
    """As when the coordinator is stopped."""
    pid = tmp_path / "pid"
    run = asyncio.create_task(actor(f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 600").tell())
    await until(pid.exists)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    script = int(pid.read_text())
    await until(lambda: not is_alive(script))


async def test_a_dry_run_runs_nothing(actor, tmp_path):
    """The outcome says what would run."""
    dry = actor(f"touch {tmp_path}/ran")
    outcome = await dry.tell(OUT.model_copy(update={"dry_run": True}))
    assert (outcome.effect, outcome.detail) == (
        Effect.WOULD,
        f"would run {dry.path} for gpu-0042, now CORDONED",
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode", [None, 0o644, 0o757])
async def test_what_is_not_to_be_trusted_is_not_run(actor, tmp_path, mode):
    """The survey and each call report it, by the rules for checks."""
    distrusted = actor(f"touch {tmp_path}/ran")
    distrusted.path.unlink() if mode is None else distrusted.path.chmod(mode)
    outcome = await distrusted.tell()
    survey = await distrusted.answer("muster_survey")
    assert outcome.effect is Effect.FAILED
    assert survey.error == f"plugins.script.actor.path: {outcome.detail}"
    assert str(distrusted.path) in outcome.detail
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("can_cordon", [True, False])
async def test_survey(actor, can_cordon):
    """It can drain nodes if the settings say so, but it does not know their present state."""
    asked = actor("exit 1", can_cordon=can_cordon)
    survey = (await asked.answer("muster_survey")).value
    assert (survey.summary, survey.can_cordon, survey.nodes) == (f"script {asked.path}", can_cordon, ())
    assert (await asked.tell()).only_tells is not can_cordon


async def test_without_an_actor():
    """The plugin has nothing to do with transitions."""
    plugins = load(Config(Settings()), entry_points(group=GROUP, name="script"))
    for hook, arguments in (("muster_survey", {}), ("muster_transition", {"transition": OUT})):
        (answer,) = await plugins.call_each(hook, 10, **arguments)
        assert (answer.value, answer.error) == (None, None)


@cases(
    ("settings", "text"),
    [
        ({}, r"actor\.path': must be given"),
        ({"path": "changed"}, "must be an absolute path"),
        ({"path": "/x", "timeout_s": 10}, "less than or equal to 9"),
        ({"path": "/x", "timeout_s": 0}, "greater than 0"),
        ({"path": "/x", "enabled": True}, "unknown setting"),
    ],
)
def test_wrong_settings_are_refused_at_start(settings, text):
    """But not an executable that is not there: agents may have the same settings."""
    with pytest.raises(SettingsError, match=text):
        load(
            Config(Settings.model_validate({"plugins": {"script": {"actor": settings}}})),
            entry_points(group=GROUP, name="script"),
        )


@pytest.fixture
def shown(actor, tmp_path):
    """The script of the guide; what it calls to close and open a node ends as the file `ends` says, with 0 or 75."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = (block for block in blocks if block.startswith("#!"))
    (tmp_path / "ends").write_text("0")
    for order in ("close-node", "open-node"):
        path = tmp_path / order
        path.write_text(f'#!/bin/sh\necho "{order} $1"\nexit "$(cat {tmp_path}/ends)"\n')
        path.chmod(0o755)
    here = {"/opt/batch/bin": tmp_path, "/var/lib/muster": tmp_path, "/usr/bin/env python3": sys.executable}
    for theirs, ours in here.items():
        assert theirs in text
        text = text.replace(theirs, str(ours))
    return actor(text)


async def told(script: Actor, *states: str) -> list[str]:
    """What came of telling it that the node, which was in service, got to these states one after the other."""
    return [
        (
            await script.tell(OUT.model_copy(update={"before": ServiceState(before), "after": ServiceState(after)}))
        ).detail
        for before, after in pairwise(("IN_SERVICE", *states))
    ]


CLOSES, OPENS = "exit code 0: close-node gpu-0042", "exit code 0: open-node gpu-0042"
NOT_OURS = "exit code 77: not closed by muster"


@pytest.mark.parametrize(
    ("states", "details"),
    [
        (("CORDONED", "PROBATION", "IN_SERVICE", "IN_SERVICE"), [CLOSES, CLOSES, OPENS, NOT_OURS]),
        (("ACCEPTING", "IN_SERVICE"), [CLOSES, OPENS]),
        (("HELD", "IN_SERVICE"), [NOT_OURS, NOT_OURS]),
    ],
)
async def test_the_script_that_is_shown_works(shown, states, details):
    """It closes a node that is out of service, and opens what it has closed."""
    assert await told(shown, *states) == details


async def test_the_script_that_is_shown_opens_a_node_that_was_forgotten_while_it_was_closed(shown):
    """All that it is told then is that a new node was accepted."""
    await told(shown, "CORDONED")
    accepted = {"before": ServiceState.ACCEPTING, "after": ServiceState.IN_SERVICE}
    assert (await shown.tell(OUT.model_copy(update=accepted))).detail == OPENS


async def test_the_script_that_is_shown_passes_on_what_comes_of_it(shown, tmp_path):
    """And goes on owing what has not come about."""
    await told(shown, "CORDONED")
    (tmp_path / "ends").write_text("75")
    failed = [f"exit code 75: {order}-node gpu-0042" for order in ("close", "open")]
    assert await told(shown, "PROBATION", "IN_SERVICE") == failed
    (tmp_path / "ends").write_text("0")
    assert await told(shown, "IN_SERVICE") == [OPENS]
