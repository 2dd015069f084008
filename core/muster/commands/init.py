"""`muster init`: writes the configuration of a fleet into a directory.

The help needs none of the imports inside the functions.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.errors import SettingsError
from muster.nouns import count
from muster.setup.fleet_kind import WITH_A_BROKER, FleetKind
from muster.terminal import say

if TYPE_CHECKING:
    from muster.setup.answers import SetupAnswers
    from muster.setup.directory import Revocation

FleetKindArgument = Annotated[
    FleetKind | None,
    typer.Argument(metavar="KIND", help="machine, systemd, slurm or kubernetes.", show_default=False),
]
DirectoryOption = Annotated[Path, typer.Option("--directory", metavar="DIR", help="Where to write the files.")]
FleetOption = Annotated[str | None, typer.Option("--fleet", metavar="NAME", help="Name of the fleet; unset: default.")]
HostOption = Annotated[
    str | None, typer.Option("--host", metavar="HOST", help="Host of broker and coordinator, as nodes reach it.")
]
AddedNodesOption = Annotated[
    str | None, typer.Option("--nodes", metavar="LIST", help="Nodes to add, such as gpu-[001-016].")
]
GpusOption = Annotated[
    int | None, typer.Option("--expect-gpus", metavar="N", help="GPUs of each node; unset: any number.")
]
RegistryOption = Annotated[
    str | None, typer.Option("--registry", metavar="REGISTRY", help="For kubernetes: where nodes get the images.")
]
RevokeOption = Annotated[
    str | None,
    typer.Option("--revoke", metavar="LIST", help="Nodes to remove; the broker will refuse their certificates."),
]
RevokeCertificateOption = Annotated[
    list[Path] | None,
    typer.Option("--revoke-certificate", metavar="FILE", help="Certificate to revoke, such as a stolen one."),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Write settings again; keep keys, tokens and nodes' certificates.")
]


def init(
    kind: FleetKindArgument = None,
    *,
    directory: DirectoryOption = Path("muster-config"),
    fleet: FleetOption = None,
    host: HostOption = None,
    nodes: AddedNodesOption = None,
    revoke: RevokeOption = None,
    revoke_certificate: RevokeCertificateOption = None,
    expect_gpus: GpusOption = None,
    registry: RegistryOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a complete configuration into a directory: settings, certificates, tokens, units or manifests.

    At a terminal it asks for what the options do not say. Call it again to add or remove nodes; what is there already
    stays as it is. Nothing is installed: README.md in the directory has the next commands.
    """
    from muster.setup.answers import node_names  # noqa: PLC0415 (see above)
    from muster.setup.directory import SetupDirectory  # noqa: PLC0415

    given = {"kind": kind, "fleet": fleet, "host": host, "expected_gpus": expect_gpus, "registry": registry}
    told = {name: value for name, value in given.items() if value is not None}
    files = SetupDirectory(directory)
    try:
        earlier = files.answers()
        if earlier is None and (revoke is not None or revoke_certificate):
            raise SettingsError(f"--revoke: {directory} has no fleet yet; name the --directory of one")
        if earlier is None:
            answers, named = _new(told, nodes)
        else:
            answers, named = _changed(earlier, told, directory, overwrite=overwrite), nodes
        revoked = _revocation(answers.kind, revoke, revoke_certificate or [])
        files.write(answers, node_names(answers.kind, named), revoked, overwrite=overwrite)
    except OSError as error:
        place = error.filename or directory  # a full disk names no file
        raise SettingsError(f"--directory: cannot write {place}: {error.strerror}; name another one") from None
    if files.written:
        say(f"Wrote {count(len(files.written), 'file')}. What to do next: {directory / 'README.md'}")
    else:
        say(f"{directory} has all of this already. To add nodes, name them: --nodes LIST")


def _new(told: dict[str, Any], nodes: str | None) -> "tuple[SetupAnswers, str | None]":
    """The answers for a new directory and the list of nodes, of which a person at a terminal is asked the rest."""
    from muster.setup.answers import SetupAnswers  # noqa: PLC0415 (see above)
    from muster.setup.questions import asked_answers, asked_kind, asked_nodes  # noqa: PLC0415

    if not sys.stdin.isatty():
        if "kind" not in told:
            raise SettingsError(f"KIND: missing; give one of {', '.join(FleetKind)}")
        return SetupAnswers(**told), nodes
    kind = told.get("kind") or asked_kind()
    answers = SetupAnswers(**{"kind": kind, **asked_answers(kind, told), **told})
    return answers, nodes or asked_nodes(kind)


def _revocation(kind: FleetKind, revoke: str | None, certificates: list[Path]) -> "Revocation":
    """The nodes and certificates to revoke."""
    from muster.setup.answers import node_names  # noqa: PLC0415 (see above)
    from muster.setup.directory import NOTHING_REVOKED, Revocation  # noqa: PLC0415

    if revoke is None and not certificates:
        return NOTHING_REVOKED
    if kind not in WITH_A_BROKER:
        raise SettingsError(f"--revoke: has no meaning for {kind}, where `muster init` issues nothing; leave it out")
    return Revocation(node_names(kind, revoke, "--revoke"), certificates)


def _changed(earlier: "SetupAnswers", told: dict[str, Any], directory: Path, *, overwrite: bool) -> "SetupAnswers":
    """The answers for a directory that an earlier call has written."""
    answers = replace(earlier, **told)
    if answers.kind is not earlier.kind:
        raise SettingsError(f"KIND: {directory} was written for {earlier.kind}; name another --directory")
    if answers != earlier and not overwrite:
        raise SettingsError(
            f"--directory: {directory} was written with other options, which its answers.toml has; name another "
            "directory, or write its settings again with --overwrite"
        )
    return answers
