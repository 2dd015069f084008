"""A plugin with one check, which finds a GPU lost for as long as a file says so and is woken by a FIFO beside it."""

from collections.abc import Mapping
from pathlib import Path

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Params,
    Reference,
    Scope,
    Section,
    Severity,
    hookimpl,
)

NAME = "breakable"
CODE = f"{NAME}.device_lost"
"""A row of the policy that comes with muster takes a node out for it as soon as one run has found it."""


class BreakableSettings(Section):
    """The table `[plugins.breakable]`."""

    directory: Path = Path()


class Breakable:
    """What can break: it is broken while there is the file `broken`, and `wake` is read whenever that changes."""

    def __init__(self, directory: Path) -> None:
        self._broken = directory / "broken"
        self._wake = directory / "wake"

    def watch(self) -> None:
        """Blocks until somebody has written a byte."""
        with self._wake.open("rb", buffering=0) as wake:
            wake.read(1)

    def measure(self, params: Params, context: Context) -> Measurement:
        """Whether it is broken."""
        return Measurement(metrics={"broken": float(self._broken.exists())})


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """What is broken is lost."""
    return [lost()] if measurement.metrics["broken"] else []


def lost() -> Finding:
    """What the check finds."""
    summary = "the GPU is lost (so the benchmark says)"
    return Finding(code=CODE, summary=summary, severity=Severity.ERROR, action=Action.REBOOT_NODE)


def check(directory: Path) -> Check[Params]:
    """The check of what can break in a directory."""
    breakable = Breakable(directory)
    return Check(
        name=NAME,
        summary="Finds what it is told to find",
        scope=Scope.NODE,
        params=Params,
        measure=breakable.measure,
        judge=judge,
        timeout_s=5.0,
        cadence_s=20.0,
        resident=True,
        watch=breakable.watch,
        finds={CODE: "a GPU is lost"},
    )


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, BreakableSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[Params]]:
    return [check(config.plugin(NAME, BreakableSettings).directory)]
