"""Agents get certificates in the names of their own nodes from a signer over HTTPS, and in no other names."""

import asyncio
import contextlib
import ssl
from datetime import timedelta

import aiohttp
import pytest
from benchmarks.kubernetes_standin.faults import Fault
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from muster_plugins.schedulers.kubernetes.enrolment.applicant import AUDIENCE
from muster_plugins.schedulers.kubernetes.enrolment.authority import utc_now
from muster_plugins.schedulers.kubernetes.enrolment.enrolling import NotEnrolled, enrol
from muster_plugins.schedulers.kubernetes.enrolment.signer import MOST_BYTES, PATH, Signer, serving

KEY = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def name_of(certificate) -> str:
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(name.value)


@pytest.fixture
async def ask(signer, authority_files):
    """Sends any request; gives status and text of the signer's answer."""
    context = ssl.create_default_context(cafile=authority_files / "tls.crt")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0, force_close=True)) as session:

        async def asking(token: str | None, body: bytes = KEY, path: str = PATH, method: str = "POST", **query: str):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            async with session.request(method, f"{signer}{path}", data=body, headers=headers, params=query) as response:
                return response.status, await response.text()

        yield asking


async def test_each_agent_gets_its_own_name(new_enrolment):
    """The certificate is for the key in the agent's directory, which only its user and group can read."""
    for node in ("n1", "n2"):
        enrolment = new_enrolment(node)
        certificate = await asyncio.to_thread(enrol, enrolment)
        assert name_of(certificate) == node
        assert certificate.not_valid_after_utc < utc_now() + timedelta(days=1, minutes=1)
        context = ssl.create_default_context(cafile=enrolment.directory / "ca.crt")
        context.load_cert_chain(enrolment.directory / "tls.crt", enrolment.directory / "tls.key")
        assert (enrolment.directory / "tls.key").stat().st_mode & 0o777 == 0o640


async def test_a_renewal_keeps_the_key(new_enrolment):
    """An agent that reads between two writes never gets a key that does not fit the certificate."""
    enrolment = new_enrolment("n1")
    first = await asyncio.to_thread(enrol, enrolment)
    key = (enrolment.directory / "tls.key").read_bytes()
    second = await asyncio.to_thread(enrol, enrolment)
    assert first.serial_number != second.serial_number
    assert (enrolment.directory / "tls.key").read_bytes() == key


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ({"node": "n2"}, KEY),
        ({}, KEY + b"CN=n2\n"),
        ({}, b"Subject: CN=coordinator\n" + KEY),
    ],
)
async def test_no_request_gets_another_name(standin, ask, query, body):
    """The name is that of the token's node, whatever else the request contains."""
    token = standin.pod_token("system:serviceaccount:muster:muster-agent", "n1", AUDIENCE)
    status, answer = await ask(token, body, **query)
    assert status == 200
    assert name_of(x509.load_pem_x509_certificate(answer.encode())) == "n1"


@pytest.mark.parametrize(
    "wanted",
    [
        ("system:serviceaccount:muster:muster-agent", "n1", "https://kubernetes.default.svc"),
        ("system:serviceaccount:muster:muster-agent", "n1", "another"),
        ("system:serviceaccount:muster:muster-agent", "coordinator", AUDIENCE),
        ("system:serviceaccount:muster:muster-agent", "n1/report", AUDIENCE),
        ("system:serviceaccount:default:muster-agent", "n1", AUDIENCE),
        ("system:serviceaccount:muster:default", "n1", AUDIENCE),
    ],
)
async def test_other_tokens_get_no_certificate(standin, ask, wanted):
    """Tokens for another audience, of another account, or of a node with an invalid name."""
    status, text = await ask(standin.pod_token(*wanted))
    assert (status, "CERTIFICATE" in text) == (403, False)


async def test_other_users_of_the_cluster_get_no_certificate(standin, ask):
    """The signer refuses tokens for the API server, also the administrator's."""
    token = standin.kubeconfig().read_text().split('"token": "')[1].split('"')[0]
    assert [(await ask(shown))[0] for shown in (token, "made-up", None)] == [403, 403, 401]


async def test_large_requests_are_refused(standin, ask):
    """Before the signer asks the API server about the token."""
    assert (await ask("token", b"x" * (MOST_BYTES + 1)))[0] == 413
    assert [request for request in standin.requests if request.path.endswith("tokenreviews")] == []


async def test_a_slow_request_occupies_no_place(signer, authority_files, ask, monkeypatch):
    """A request that does not end is refused in time, and other requests of that address are answered then."""
    monkeypatch.setattr("muster_plugins.schedulers.kubernetes.enrolment.signer.ANSWERED_WITHIN_S", 0.2)
    context = ssl.create_default_context(cafile=authority_files / "tls.crt")
    port = int(signer.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\n".encode())
    async with asyncio.timeout(20):
        assert (await reader.readline()).split()[1] == b"503"
    writer.close()
    assert (await ask("made-up"))[0] == 403


async def test_silent_connections_keep_nobody_out(authority, authority_files, signer_tls, monkeypatch):
    """Without a certificate each day, a fleet loses its broker: whoever reaches the signer may open what it likes."""
    monkeypatch.setattr("muster_plugins.schedulers.kubernetes.enrolment.signer.MOST_CONNECTIONS", 10)
    monkeypatch.setattr("muster.http_server.HANDSHAKE_S", 0.2)
    context = ssl.create_default_context(cafile=authority_files / "tls.crt")
    async with serving(Signer(authority, lambda _token: b""), "127.0.0.1:0", signer_tls) as url:
        port = int(url.rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(30)]
        without_tls = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        async with asyncio.timeout(10):
            for reader, _ in (*silent[:20], *without_tls):
                with contextlib.suppress(OSError):
                    assert await reader.read() == b""
            connector = aiohttp.TCPConnector(ssl=context)
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.post(f"{url}{PATH}", data=KEY) as response,
            ):
                assert response.status == 401
        for _, writer in (*silent, *without_tls):
            writer.close()


async def test_other_paths_and_methods_are_not_there(ask):
    """The signer does one thing."""
    assert [(await ask("token", path="/"))[0], (await ask("token", method="GET"))[0]] == [404, 405]


async def test_one_request_of_an_address_is_answered_at_a_time(standin, ask):
    """The others are refused at once, and cause no request to the API server."""
    standin.order(Fault.SLOW, path="*/tokenreviews")
    token = standin.pod_token("system:serviceaccount:muster:muster-agent", "n1", AUDIENCE)
    answers = await asyncio.gather(*(ask(token) for _ in range(50)))
    assert sorted({status for status, _ in answers}) == [200, 429]
    assert [status for status, _ in answers].count(200) == 1
    assert len(standin.requests) == 1
    assert (await ask(token))[0] == 200


@pytest.mark.parametrize("pause_s", [0.5])
async def test_an_address_waits_after_an_answer(standin, ask):
    """The signer refuses further requests without asking the API server, also after a refusal."""
    answers = [(await ask("made-up"))[0] for _ in range(10)]
    assert answers == [403, *[429] * 9]
    assert len(standin.requests) == 1
    async with asyncio.timeout(20):
        while (await ask("made-up"))[0] == 429:
            await asyncio.sleep(0.05)
    assert len(standin.requests) == 2


async def test_without_the_api_server_the_agent_retries(standin, ask):
    """The signer answers 503, not 403."""
    await standin.stop()
    status, text = await ask("token")
    assert status == 503
    assert "API server" in text


async def test_the_agent_gets_the_reason(new_enrolment, standin):
    """The signer's reason, or why there was no answer."""
    with pytest.raises(NotEnrolled, match="cannot be the name of a node"):
        await asyncio.to_thread(enrol, new_enrolment("coordinator"))
    away = new_enrolment("n1")._replace(signer="https://127.0.0.1:1")
    with pytest.raises(NotEnrolled, match="refused"):
        await asyncio.to_thread(enrol, away)
    stranger = new_enrolment("n2")._replace(authority_file=standin.authority)
    with pytest.raises(NotEnrolled, match="certificate"):
        await asyncio.to_thread(enrol, stranger)
