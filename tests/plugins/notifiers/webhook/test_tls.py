"""Webhooks over TLS: which certificates are trusted."""

import ssl
import subprocess
from pathlib import Path

import pytest
from tests.plugins.notifiers.webhook.servers import BACK, generic, serving

from muster.transition import Effect


def new_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key; it is its own authority."""
    certificate, key = directory / "ca.crt", directory / "key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-subj", "/CN=ops",
         "-addext", "subjectAltName = IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return certificate, key


@pytest.fixture(scope="module")
def certificate(live: None, tmp_path_factory) -> tuple[Path, Path]:
    """The certificate of a server and its key."""
    return new_certificate(tmp_path_factory.mktemp("tls"))


def tls_of_server(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return context


async def test_tls(plugin, certificate, tmp_path):
    """A server is told only when its certificate comes from an authority that is trusted for it."""
    async with serving(tls_of_server(certificate)) as server:
        trusting = plugin(ops=generic(tmp_path, f"{server.url}/ops", ca_file=str(certificate[0])))
        distrusting = plugin(ops=generic(tmp_path, f"{server.url}/ops"))
        confused = plugin(ops=generic(tmp_path, f"{server.url}/ops", ca_file=str(tmp_path / "secret")))
        assert (await trusting.tell()).effect is Effect.DONE
        assert (await trusting.answer("muster_survey")).error is None
        for told, text in ((distrusting, "self-signed"), (confused, "targets.ops.ca_file: cannot use")):
            outcome = await told.tell()
            assert outcome.effect is Effect.FAILED
            assert text in outcome.detail
            assert text in ((await told.answer("muster_survey")).error or "")
        assert len(server.posts["/ops"]) == 1


async def test_a_certificate_of_an_authority_is_replaced(plugin, certificate, tmp_path):
    """The next post goes by the new one, and so does the survey."""
    ca_file, _ = new_certificate(tmp_path)
    async with serving(tls_of_server(certificate)) as server:
        told = plugin(chat={"url": f"{server.url}/chat", "format": "slack", "ca_file": str(ca_file)})
        assert "self-signed" in (await told.tell()).detail
        ca_file.write_bytes(certificate[0].read_bytes())
        assert (await told.answer("muster_survey")).error is None
        assert (await told.tell()).detail == "chat: notified"
        ca_file.unlink()
        assert "targets.chat.ca_file: cannot use" in (await told.tell(BACK)).detail
