"""An authority of one's own that issues and revokes certificates, with the program openssl.

`cryptography` could do the same and is a package of the extra `kubernetes` only; openssl is on every host that has
Mosquitto. Its files are those of `openssl ca`, which an operator can therefore call in the directory.
"""

import shutil
import tempfile
from collections.abc import Collection
from ipaddress import ip_address
from pathlib import Path

from muster.errors import SettingsError, Unavailable
from muster.setup.plan import CA, CERTIFICATE, KEY
from muster.setup.programs import run_program

DAYS = "3650"

AUTHORITY_KEY = "ca.key"

_INDEX, _ISSUED, _SETTINGS = "index.txt", "issued", "openssl.cnf"

# An expired list would keep everybody out, so it is as long valid as the certificates.
_SETTINGS_TEXT = f"""\
[ca]
default_ca = fleet
[fleet]
certificate = {CA}
private_key = {AUTHORITY_KEY}
database = {_INDEX}
new_certs_dir = {_ISSUED}
rand_serial = yes
unique_subject = no
default_md = sha256
default_days = {DAYS}
default_crl_days = {DAYS}
policy = names
[names]
commonName = supplied
"""


class FleetAuthority:
    """The authority in a directory: `ca.crt`, which all trust, `ca.key`, which signs, and what it has issued."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.certificate = directory / CA
        self._index = directory / _INDEX

    def create(self, fleet: str) -> None:
        """Makes key and certificate in the directory. Raises Unavailable if openssl cannot."""
        key = self._directory / AUTHORITY_KEY
        _make_key(key)
        run_program(
            "openssl", "req", "-x509", "-new", "-key", key, "-subj", f"/CN=muster {fleet}", "-days", DAYS,
            "-addext", "keyUsage = critical, keyCertSign, cRLSign", "-out", self.certificate,
        )  # fmt: skip

    def issue(self, name: str, directory: Path, *, server: str | None = None) -> None:
        """Writes a certificate in that name, its key and the authority's certificate into the directory.

        `server` is the host name or address of a server; without it, the certificate is a client's.
        """
        _make_key(directory / KEY)
        with tempfile.TemporaryDirectory() as scratch:
            request, extensions = Path(scratch, "request"), Path(scratch, "extensions")
            extensions.write_text(_extensions(server), encoding="utf-8")
            run_program("openssl", "req", "-new", "-key", directory / KEY, "-subj", f"/CN={name}", "-out", request)
            issued = (directory / CERTIFICATE).resolve()
            self._openssl_ca("-batch", "-notext", "-in", request, "-extfile", extensions, "-out", issued)
        shutil.copy(self.certificate, directory / CA)

    def has_issued(self, name: str) -> bool:
        """Whether the index has a certificate in this name."""
        return any(entry[-1] == f"/CN={name}" for entry in self._entries())

    def revoke(self, names: Collection[str]) -> None:
        """Revokes every certificate in these names that the index has."""
        for status, _, _, serial, *_, subject in self._entries():
            if status == "V" and subject.removeprefix("/CN=") in names:
                self._openssl_ca("-revoke", Path(_ISSUED, f"{serial}.pem"))

    def revoke_file(self, certificate: Path) -> None:
        """Revokes the certificate in this file, also if the index does not have it. Call `require_own` before."""
        serial = run_program("openssl", "x509", "-in", certificate, "-noout", "-serial").strip().removeprefix("serial=")
        if not any(entry[0] == "R" and entry[3] == serial for entry in self._entries()):
            self._openssl_ca("-revoke", certificate.resolve())

    def require_own(self, certificate: Path) -> None:
        """Raises SettingsError if the file has no certificate, or one that this authority has not issued."""
        if not certificate.is_file():
            raise SettingsError(f"--revoke-certificate: {certificate} is not a file; name the certificate to revoke")
        try:
            run_program("openssl", "verify", "-no_check_time", "-CAfile", self.certificate, certificate)
        except Unavailable as error:
            raise SettingsError(
                f"--revoke-certificate: {certificate} has no certificate of {self.certificate}; name one that this "
                "authority has issued"
            ) from error

    def write_revoked(self, file: Path) -> None:
        """Writes the list of revoked certificates, which a broker reads."""
        fresh = file.with_name(f".{file.name}.new")
        self._openssl_ca("-gencrl", "-out", fresh.resolve())
        fresh.replace(file)

    def _entries(self) -> list[list[str]]:
        """What was issued: status, end, time of revocation, serial number, file and subject of each certificate."""
        text = self._index.read_text(encoding="utf-8") if self._index.exists() else ""
        return [line.split("\t") for line in text.splitlines()]

    def _openssl_ca(self, *arguments: str | Path) -> None:
        """Runs `openssl ca` in the directory, because its settings name files there."""
        (self._directory / _ISSUED).mkdir(mode=0o700, exist_ok=True)
        self._index.touch(mode=0o600)
        (self._directory / _SETTINGS).write_text(_SETTINGS_TEXT, encoding="utf-8")
        run_program("openssl", "ca", "-config", _SETTINGS, *arguments, directory=self._directory)


def _make_key(path: Path) -> None:
    run_program("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    path.chmod(0o600)


def _extensions(server: str | None) -> str:
    usage = "clientAuth" if server is None else "serverAuth"
    names = "" if server is None else f"subjectAltName = {_alternative_name(server)}\n"
    return (
        "basicConstraints = critical, CA:FALSE\nkeyUsage = critical, digitalSignature\n"
        f"extendedKeyUsage = {usage}\nsubjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n{names}"
    )


def _alternative_name(server: str) -> str:
    try:
        return f"IP:{ip_address(server)}"
    except ValueError:
        return f"DNS:{server}"
