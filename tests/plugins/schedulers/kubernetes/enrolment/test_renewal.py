"""An agent has a valid certificate while its pod lives."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from tests.waiting import wait_for

from muster_plugins.schedulers.kubernetes.enrolment import enrolling
from muster_plugins.schedulers.kubernetes.enrolment.applicant import ACCOUNT, AUDIENCE
from muster_plugins.schedulers.kubernetes.enrolment.authority import LIFETIME, utc_now
from muster_plugins.schedulers.kubernetes.enrolment.enrolling import Enrolment, NotEnrolled, keep_enrolled


class Enough(Exception):
    """Ends the endless loop."""


class Days:
    """A clock that advances while the loop sleeps, and a signer that succeeds or fails call by call."""

    def __init__(self, *answers: bool) -> None:
        self.began = self.now = utc_now()
        self.asked: list[float] = []
        self._answers = iter(answers)

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def enrol(self, _enrolment: Enrolment) -> SimpleNamespace:
        self.asked.append((self.now - self.began) / LIFETIME)
        match next(self._answers, None):
            case None:
                raise Enough
            case False:
                raise NotEnrolled("the signer is away")
        return SimpleNamespace(
            not_valid_before_utc=self.now,
            not_valid_after_utc=self.now + LIFETIME,
            subject=SimpleNamespace(rfc4514_string=lambda: "CN=n1"),
        )


@pytest.fixture
def live_through(monkeypatch):
    """Times of the agent's requests, in lifetimes of a certificate: `live_through(True, False)` with its answers."""

    def living(*answers: bool) -> list[float]:
        days = Days(*answers)
        monkeypatch.setattr(enrolling, "enrol", days.enrol)
        monkeypatch.setattr(enrolling, "utc_now", lambda: days.now)
        monkeypatch.setattr("time.sleep", days.sleep)
        monkeypatch.setattr("signal.signal", lambda *_: None)
        with pytest.raises(Enough):
            keep_enrolled(Enrolment("https://x", *[None] * 3))  # type: ignore[arg-type]
        return days.asked

    return living


def test_a_certificate_is_renewed_at_half_of_its_life(live_through):
    """Plus or minus a tenth, every time."""
    asked = live_through(*[True] * 20)
    pauses = [later - before for before, later in pairwise(asked)]
    assert all(0.4 <= pause <= 0.61 for pause in pauses)
    assert len(set(pauses)) > 1


def test_what_no_retry_brings_ends_the_command(muster, tmp_path):
    """It says what is missing, all at once, and what to do."""
    (tmp_path / "token").write_text("x")
    places = {"--authority": tmp_path / "a" / "ca.crt", "--token": tmp_path / "token", "--tls": tmp_path / "tls"}
    ended = muster("kubernetes", "enrol", *(str(word) for option in places.items() for word in option))
    assert (ended.returncode, ended.stdout) == (69, "")
    assert ended.stderr == (
        f"muster: --authority: cannot read {places['--authority']}; "
        f"--tls: cannot write to {places['--tls']}; "
        "mount the volumes as daemonset/base/agent.yaml does\n"
    )


def test_requests_are_repeated_until_the_signer_answers(live_through):
    """At most half a minute apart, so that the old certificate is still valid."""
    asked = live_through(True, *[False] * 30, True)
    renewal, tries = asked[1], asked[1:32]
    assert 0.4 <= renewal <= 0.61
    assert all(0 <= later - before <= 30 / LIFETIME.total_seconds() for before, later in pairwise(tries))


@pytest.fixture
def program(tmp_path):
    """Starts `muster kubernetes …` and ends it with the test: `program("sign", "--listen", …)`; it logs to a file."""
    running = []

    def start(*arguments: str, **env: str) -> tuple[subprocess.Popen[bytes], Path]:
        path = tmp_path / f"{arguments[0]}.log"
        with path.open("wb") as log:
            command = [sys.executable, "-m", "muster", "kubernetes", *arguments]
            variables = {**os.environ, "MUSTER_LOG__FORMAT": "json", **env}
            running.append(subprocess.Popen(command, env=variables, stderr=log, stdin=subprocess.DEVNULL))
        return running[-1], path

    yield start
    for process in running:
        process.kill()
        process.wait()


async def logged(path: Path, event: str) -> dict[str, str]:
    """The first line of an event in a log."""

    def read() -> dict[str, str] | None:
        lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("}\n")]
        return next((line for line in lines if line["event"] == event), None)

    return await asyncio.to_thread(wait_for, read, f"{event} in {path.read_text()}")


@pytest.fixture
async def signing(standin, signer_account, authority_files, signer_tls, program):
    """A signer as a process, and its URL."""
    account = {
        "MUSTER_PLUGINS__KUBERNETES__API": standin.url,
        "MUSTER_PLUGINS__KUBERNETES__SERVICE_ACCOUNT": str(signer_account),
    }
    here = ("--authority", str(authority_files), "--tls", str(signer_tls), "--listen", "127.0.0.1:0")
    process, log = program("sign", *here, **account)
    return process, (await logged(log, "signer_ready"))["url"]


async def test_the_commands_get_an_agent_its_certificate(standin, authority_files, tmp_path, program, signing):
    """`muster kubernetes sign` and `muster kubernetes enrol` as processes; both end with SIGTERM."""
    sign, url = signing
    token, directory = tmp_path / "token", tmp_path / "agent"
    token.write_text(standin.pod_token(ACCOUNT, "n1", AUDIENCE))
    directory.mkdir()
    there = ("--authority", str(authority_files / "tls.crt"), "--token", str(token), "--tls", str(directory))
    enrol, log = program("enrol", "--signer", url, *there)
    assert (await logged(log, "enrolled"))["subject"] == "CN=n1"
    certificate = x509.load_pem_x509_certificate((directory / "tls.crt").read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=n1"
    for process in (enrol, sign):
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 20) == 0
    assert token.read_text() not in log.read_text()
