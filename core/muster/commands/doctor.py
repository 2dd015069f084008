"""`muster doctor`: looks at everything that an agent or the coordinator needs, and says what to change.

The help needs none of the imports inside the functions.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from enum import StrEnum
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.options import JsonOption, load_settings, options_of
from muster.extras import require_extras
from muster.terminal import say, say_json

if TYPE_CHECKING:
    from muster.config import Settings
    from muster.doctor.setup_finding import SetupFinding
    from muster.plugins import Plugins

GROUP = "muster.doctors"


class HostRole(StrEnum):
    """What runs on this host."""

    AGENT = "agent"
    COORDINATOR = "coordinator"


RoleArgument = Annotated[HostRole, typer.Argument(metavar="ROLE", help="agent or coordinator: what runs on this host.")]


@options_of(load_settings)
def doctor(settings: "Settings", role: RoleArgument, as_json: JsonOption = False) -> None:
    """Look at all that a part of muster needs on this host, and say what to change.

    Run it as the user of that part, with its settings. It may run at the same time, and nothing is changed.

    Exit codes: 0 if all is well, 1 for WARN, 2 for FAIL.
    """
    require_extras("doctor", role)
    import asyncio  # noqa: PLC0415 (see above)

    from muster import logs, plugins  # noqa: PLC0415
    from muster.config import Config  # noqa: PLC0415
    from muster.model import EXIT_CODES, worst  # noqa: PLC0415

    logs.configure(settings.log)
    loaded = plugins.load(Config(settings))
    found: list[SetupFinding] = []

    def note(finding: "SetupFinding") -> None:
        found.append(finding)
        if not as_json:  # a person sees each as soon as it is known
            say(f"{finding.verdict:<9}{finding.check}: {finding.detail}")

    async def examine() -> None:
        async for finding in _doctor_of(role)(settings, loaded):
            note(finding)

    for finding in _of_settings(settings, loaded):
        note(finding)
    asyncio.run(examine())
    if as_json:
        say_json([finding._asdict() for finding in found])
    raise typer.Exit(EXIT_CODES[worst([finding.verdict for finding in found])])


def _of_settings(settings: "Settings", loaded: "Plugins") -> "Iterator[SetupFinding]":
    """Settings and plugins, on which all else depends. Their own checks need an event loop to themselves."""
    from muster.commands.config import examined  # noqa: PLC0415 (see above)
    from muster.doctor.setup_finding import SetupFinding  # noqa: PLC0415
    from muster.model import Verdict  # noqa: PLC0415

    _, problems = examined(settings, loaded)
    for problem in problems:
        yield SetupFinding("settings", Verdict.FAIL, problem)
    if not problems:
        yield SetupFinding("settings", Verdict.PASS, "nothing in them is wrong; `muster config show` prints them")
    yield _of_plugins(loaded)


def _of_plugins(loaded: "Plugins") -> "SetupFinding":
    from muster.doctor.setup_finding import SetupFinding  # noqa: PLC0415 (see above)
    from muster.model import Verdict  # noqa: PLC0415

    if failed := [f"{info.name}: {info.error}" for info in loaded.infos if info.status == "failed"]:
        text = f"{'; '.join(failed)}; mend it, or name it in plugins.disabled"
        return SetupFinding("plugins", Verdict.FAIL, text)
    running = sum(info.status == "loaded" for info in loaded.infos)
    return SetupFinding("plugins", Verdict.PASS, f"{running} are loaded")


def _doctor_of(role: HostRole) -> "Callable[[Settings, Plugins], AsyncIterator[SetupFinding]]":
    (point,) = entry_points(group=GROUP, name=role)
    doctor: Callable[[Settings, Plugins], AsyncIterator[SetupFinding]] = point.load()
    return doctor
