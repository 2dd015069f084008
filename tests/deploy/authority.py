"""A certificate authority that a test makes: certificates of brokers and nodes, valid, expired and revoked."""

import subprocess
from pathlib import Path

DAY_S = 86_400

KEY = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
"""The kind of each key. RSA takes 0.3 s for one."""


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class Authority:
    """An authority with its files in `directory`. `certificate` is what clients and brokers trust."""

    def __init__(self, directory: Path, name: str, usage: str | None = "critical, keyCertSign, cRLSign") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.certificate, self._key = directory / "ca.pem", directory / "ca.key"
        openssl(
            "req", "-x509", "-newkey", *KEY, "-nodes", "-subj", f"/CN={name}", "-keyout", self._key,
            "-out", self.certificate, *(() if usage is None else ("-addext", f"keyUsage = {usage}")),
        )  # fmt: skip
        self._settings = directory / "ca.cnf"
        self._settings.write_text(
            "[ca]\ndefault_ca = muster\n[muster]\n"
            f"database = {directory}/index.txt\nserial = {directory}/serial\nnew_certs_dir = {directory}\n"
            f"certificate = {self.certificate}\nprivate_key = {self._key}\n"
            "default_md = sha256\npolicy = names\nunique_subject = no\ndefault_crl_days = 30\n"
            "[names]\ncommonName = supplied\n"
        )
        (directory / "index.txt").touch()
        (directory / "serial").write_text("01\n")

    def issue(
        self, name: str, *, valid: tuple[str, str] = ("20200101000000Z", "20400101000000Z"), host: str = "localhost"
    ) -> tuple[Path, Path]:
        """A certificate and its key for `name`, also for a server at `host`; localhost is 127.0.0.1 as well."""
        stem = f"{name}-{len(list(self._directory.iterdir()))}"
        key, request, certificate = (self._directory / f"{stem}.{suffix}" for suffix in ("key", "csr", "pem"))
        openssl("req", "-newkey", *KEY, "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        extensions = self._directory / "extensions"
        addresses = "DNS:localhost, IP:127.0.0.1" if host == "localhost" else f"DNS:{host}"
        extensions.write_text(f"subjectAltName = {addresses}\nauthorityKeyIdentifier = keyid\n")
        begin, end = valid
        openssl(
            "ca", "-batch", "-notext", "-config", self._settings, "-in", request, "-out", certificate,
            "-extfile", extensions, "-startdate", begin, "-enddate", end,
        )  # fmt: skip
        return certificate, key

    def revoke(self, certificate: Path) -> None:
        """From the next revocation list on."""
        openssl("ca", "-config", self._settings, "-revoke", certificate)

    def revoked(self) -> Path:
        """The file of the revocation list as it is now."""
        path = self._directory / "revoked.pem"
        openssl("ca", "-config", self._settings, "-gencrl", "-out", path)
        return path
