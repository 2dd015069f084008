"""Writes the configuration of a fleet. What is there already stays, and so a second call only adds nodes."""

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.broker_acl import COORDINATOR
from muster.errors import SettingsError
from muster.setup.answers import SetupAnswers, answers_from_toml
from muster.setup.authority import AUTHORITY_KEY, FleetAuthority
from muster.setup.fleet_kind import WITH_A_BROKER, FleetKind
from muster.setup.kubernetes import new_secrets, token_in
from muster.setup.plan import (
    ANSWERS,
    BROKER_SETTINGS,
    CA,
    CERTIFICATE,
    INVENTORY,
    KEY,
    OPERATOR_TOKEN,
    READER_TOKEN,
    REVOKED,
    SETTINGS,
    inventory,
    node_settings,
    plan,
)

SECRETS = "secrets.yaml"


@dataclass(frozen=True, slots=True)
class Revocation:
    """Nodes whose files are deleted and whose certificates are revoked, and files of other certificates to revoke."""

    nodes: Sequence[str] = ()
    certificates: Sequence[Path] = ()


NOTHING_REVOKED = Revocation()


class SetupDirectory:
    """The directory with the files of one fleet. `written` has the paths that were written, relative to it.

    Settings and manifests are for everybody who may enter the directory, which is its owner. Keys, tokens and Secrets
    are for the owner also after they were copied elsewhere.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.written: list[str] = []

    def answers(self) -> SetupAnswers | None:
        """What an earlier call was told; None if the directory is new. Raises SettingsError if others use it."""
        file = self._root / ANSWERS
        if file.is_file():
            return answers_from_toml(file.read_text(encoding="utf-8"), str(file))
        if self._root.exists() and (not self._root.is_dir() or any(self._root.iterdir())):
            raise SettingsError(
                f"--directory: {self._root} is there and not from `muster init`; name another directory"
            )
        return None

    def write(
        self, answers: SetupAnswers, nodes: Iterable[str], revoked: Revocation = NOTHING_REVOKED, *, overwrite: bool
    ) -> None:
        """Writes what is missing; with `overwrite` all files, except keys, tokens and certificates of clients.

        Raises SettingsError for a certificate that cannot be revoked, and for a node that never had one.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, text in plan(answers).items():
            self._write(path, text, overwrite=overwrite)
        if answers.kind is FleetKind.KUBERNETES:
            self._write_secrets()
        if answers.kind in WITH_A_BROKER:
            self._write_fleet(answers, nodes, revoked, overwrite=overwrite)

    def nodes(self) -> list[str]:
        """The nodes that have files."""
        return sorted(path.name for path in self._root.glob("nodes/*"))

    def _write_secrets(self) -> None:
        if (self._root / SECRETS).exists():
            return
        made = new_secrets()
        self._write(OPERATOR_TOKEN, token_in(made), mode=0o600, overwrite=True)
        self._write(SECRETS, made, mode=0o600)

    def _write_fleet(
        self, answers: SetupAnswers, nodes: Iterable[str], revoked: Revocation, *, overwrite: bool
    ) -> None:
        authority = FleetAuthority(self._root / "authority")
        if not authority.certificate.exists():
            authority.certificate.parent.mkdir(mode=0o700, exist_ok=True)
            authority.create(answers.fleet)
            self.written += [f"authority/{name}" for name in (CA, AUTHORITY_KEY)]
        self._certify(authority, "broker", "broker", server=answers.host, overwrite=overwrite)
        self._certify(authority, COORDINATOR, "coordinator")
        self._revoke(authority, revoked)
        for token in (OPERATOR_TOKEN, READER_TOKEN):
            self._write(f"coordinator/{token}", f"{secrets.token_urlsafe(32)}\n", mode=0o600)
        for node in sorted({*self.nodes(), *nodes}):
            self._write(f"nodes/{node}/{SETTINGS}", node_settings(answers, node), overwrite=overwrite)
            self._certify(authority, node, f"nodes/{node}")
        self._write(INVENTORY, inventory(answers, self.nodes()), overwrite=True)

    def _revoke(self, authority: FleetAuthority, revoked: Revocation) -> None:
        """Writes the list that the broker reads, which is empty at first, and deletes the files of the nodes."""
        broker = self._root / BROKER_SETTINGS
        if revoked != NOTHING_REVOKED and "crlfile" not in broker.read_text(encoding="utf-8"):
            raise SettingsError(f"--revoke: {broker} does not name {REVOKED}; write it again with --overwrite")
        certificates = [*revoked.certificates, *self._of_nodes(authority, revoked.nodes)]
        for certificate in certificates:
            authority.require_own(certificate)
        if revoked != NOTHING_REVOKED or not (self._root / REVOKED).exists():
            authority.revoke(revoked.nodes)
            for certificate in certificates:
                authority.revoke_file(certificate)
            authority.write_revoked(self._root / REVOKED)
            self.written.append(REVOKED)
        for node in revoked.nodes:
            shutil.rmtree(self._root / "nodes" / node, ignore_errors=True)

    def _of_nodes(self, authority: FleetAuthority, nodes: Iterable[str]) -> Iterator[Path]:
        """The present certificates of nodes: an authority of an older version has not noted what it issued."""
        for node in nodes:
            certificate = self._root / "nodes" / node / CERTIFICATE
            if certificate.exists():
                yield certificate
            elif not authority.has_issued(node):
                raise SettingsError(
                    f"--revoke: {node!r} has no certificate in {self._root}; look for its name in {self._root}/nodes, "
                    "or name its file with --revoke-certificate"
                )

    def _certify(
        self, authority: FleetAuthority, name: str, place: str, *, server: str | None = None, overwrite: bool = False
    ) -> None:
        """Issues a certificate unless there is one. Its file comes last: what is interrupted is done again."""
        directory = self._root / place
        if (directory / CERTIFICATE).exists() and not overwrite:
            return
        with tempfile.TemporaryDirectory(dir=self._root, prefix=".") as scratch:
            authority.issue(name, Path(scratch), server=server)
            for file in (KEY, CA, CERTIFICATE):
                Path(scratch, file).replace(directory / file)
                self.written.append(f"{place}/{file}")

    def _write(self, path: str, text: str, *, mode: int | None = None, overwrite: bool = False) -> None:
        file = self._root / path
        if file.exists() and (not overwrite or file.read_text(encoding="utf-8") == text):
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}.new")
        fresh.touch(mode=mode or (0o755 if text.startswith("#!") else 0o644))
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(file)
        self.written.append(path)
