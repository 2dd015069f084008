"""An authority of one's own that issues certificates, with the program openssl.

`cryptography` could do the same and is a package of the extra `kubernetes` only; openssl is on every host that has
Mosquitto.
"""

import secrets
import shutil
import tempfile
from ipaddress import ip_address
from pathlib import Path

from muster.setup.plan import CA, CERTIFICATE, KEY
from muster.setup.programs import run_program

DAYS = "3650"

AUTHORITY_KEY = "ca.key"


class FleetAuthority:
    """The authority in a directory: `ca.crt`, which all trust, and `ca.key`, which signs."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / CA
        self._key = directory / AUTHORITY_KEY

    def create(self, fleet: str) -> None:
        """Makes key and certificate in the directory. Raises Unavailable if openssl cannot."""
        _make_key(self._key)
        run_program(
            "openssl", "req", "-x509", "-new", "-key", self._key, "-subj", f"/CN=muster {fleet}", "-days", DAYS,
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
            run_program(
            "openssl",     "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
                "-set_serial", f"0x{secrets.token_hex(16)}", "-days", DAYS, "-extfile", extensions,
                "-out", directory / CERTIFICATE,
            )  # fmt: skip
        shutil.copy(self.certificate, directory / CA)


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
