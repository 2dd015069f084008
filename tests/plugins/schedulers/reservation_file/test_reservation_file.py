"""The file that reserves a node: what it says, and that another's is never touched."""

import json
import os
import re
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muster import Idleness, Reservation
from muster.config import Config, Settings
from muster_plugins.schedulers.reservation_file.mark import FileTaken, ReservationMark
from muster_plugins.schedulers.reservation_file.plugin import muster_idle_probes, muster_reservations

OURS = "muster on node n1 of fleet blue"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reserved"


def config(**settings) -> Config:
    table = {"node": "n1", "fleet": "blue", "plugins": {"reservation_file": settings}}
    return Config(Settings.model_validate(table))


def reservations(**settings) -> list[Reservation]:
    return [*muster_reservations(config(**settings))]


@pytest.fixture
def reservation(path) -> Reservation:
    """What the plugin contributes when it is given a path."""
    (made,) = reservations(path=str(path))
    return made


def test_without_a_path_nothing_is_reserved():
    """The plugin is off until it is told where."""
    assert reservations() == []


def test_the_file_says_who_why_and_since_when(path, reservation):
    """Everybody may read it, whatever the agent's umask is, and nothing else is left beside it."""
    before = os.umask(0o077)
    try:
        reservation.reserve("collective in group g")
    finally:
        os.umask(before)
    said = json.loads(path.read_text())
    assert (said["who"], said["why"]) == (OURS, "collective in group g")
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(said["since"]) < timedelta(minutes=1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [*path.parent.iterdir()] == [path]


def test_both_can_be_repeated(path, reservation):
    """An own file is taken over with the new reason; where none is, none has to be removed."""
    reservation.release()
    reservation.reserve("one")
    reservation.reserve("two")
    assert json.loads(path.read_text())["why"] == "two"
    reservation.release()
    reservation.release()
    assert [*path.parent.iterdir()] == []


def test_the_file_of_an_agent_that_was_killed_is_taken_over(path, reservation):
    """It says the same of itself as the one that comes after it, and what it was writing is in nobody's way."""
    ReservationMark(path, OURS).make("one")
    path.with_name(".draft.reserved").write_text('{"who": "mus')
    reservation.reserve("two")
    reservation.release()
    assert [*path.parent.iterdir()] == []


NOT_SAID = "somebody (it does not say in JSON who)"
FOREIGN = {
    "another node": ('{"who": "muster on node n2", "why": "pairs"}', "muster on node n2 (pairs)"),
    "a person": ('{"who": "mia", "since": "noon"}', "mia (no reason given)"),
    "empty": ("", NOT_SAID),
    "no JSON": ("hands off!\n", NOT_SAID),
    "other JSON": ('["mia"]', NOT_SAID),
    "half of ours": ('{"who": "muster on node n1 of fleet blue", "why": "pa', NOT_SAID),
    "deep": ("[" * 5000, NOT_SAID),
    "long": (json.dumps({"who": "m" * 5000, "why": "y" * 5000}), f"{'m' * 100} ({'y' * 100})"),
    "endless": (json.dumps({"who": OURS, "why": "y" * 100_000}), NOT_SAID),
}


@pytest.mark.parametrize(("content", "whose"), FOREIGN.values(), ids=FOREIGN)
def test_the_file_of_somebody_else_is_respected(path, reservation, content, whose):
    """Who it is, is told; it is neither overwritten nor removed, whatever it holds."""
    path.write_text(content)
    before = path.stat()
    with pytest.raises(FileTaken) as taken:
        reservation.reserve("mine")
    assert str(taken.value) == f"{path} is held by {whose}"
    reservation.release()
    assert path.read_text() == content
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [*path.parent.iterdir()] == [path]


def idleness(path: Path) -> Idleness:
    """What the plugin's idle probe says."""
    (probe,) = muster_idle_probes(config(path=str(path)))
    return probe.probe(frozenset())


@pytest.mark.parametrize("content", [content for content, _ in FOREIGN.values()], ids=FOREIGN)
def test_a_node_is_busy_while_somebody_else_has_the_file(path, content):
    """So that runs which reserve nothing stay away as well."""
    assert idleness(path) is Idleness.IDLE
    path.write_text(content)
    assert idleness(path) is Idleness.BUSY


def test_a_node_is_idle_while_the_file_is_ours(path, reservation):
    """Nobody is in his own way."""
    reservation.reserve("mine")
    assert idleness(path) is Idleness.IDLE


def test_without_a_path_nobody_is_asked():
    """The probe comes with the file."""
    assert [*muster_idle_probes(config())] == []


def test_the_file_has_its_content_on_disk_before_it_appears(path, reservation, monkeypatch):
    """An empty one would be nobody's, and nobody would remove it."""
    on_disk: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: on_disk.append(Path(f"/proc/self/fd/{fd}").read_text()))
    link = os.link
    monkeypatch.setattr(os, "link", lambda *paths: link(*paths) if on_disk else None)
    reservation.reserve("mine")
    assert on_disk == [path.read_text()]


def test_what_is_no_file_is_respected_as_well(path, reservation):
    """A directory, a pipe that nobody writes to, a link that leads nowhere."""
    for make in (path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("nowhere")):
        make()
        with pytest.raises(FileTaken, match="is held by somebody"):
            reservation.reserve("mine")
        reservation.release()
        assert os.path.lexists(path)
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.usefixtures("live")
def test_the_prolog_of_the_guide_holds_a_job_back_until_the_file_is_gone(path, reservation):
    """And not at all where there is none."""
    guide = Path(__file__).parents[4] / "docs" / "how-to" / "leases.md"
    (shown,) = re.findall(r"^```sh\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    prolog = ["sh", "-e", "-c", shown.replace("/run/muster/reserved", str(path))]
    assert subprocess.run(prolog, timeout=30, check=False).returncode == 0
    reservation.reserve("mine")
    with subprocess.Popen(prolog) as held_back:
        with pytest.raises(subprocess.TimeoutExpired):
            held_back.wait(0.3)
        reservation.release()
        assert held_back.wait(30) == 0


def test_a_directory_that_is_missing_is_named(path):
    """Nobody is kept away by a file that cannot be written."""
    (reservation,) = reservations(path=str(path / "below"))
    with pytest.raises(FileNotFoundError, match="reserved"):
        reservation.reserve("mine")
    reservation.release()


def test_two_agents_never_both_get_it(path):
    """One that comes second is refused until the first has let go."""
    first, second = ReservationMark(path, "first"), ReservationMark(path, "second")
    first.make("a")
    with pytest.raises(FileTaken, match=r"first \(a\)"):
        second.make("b")
    second.remove()
    assert json.loads(path.read_text())["who"] == "first"
    first.remove()
    second.make("b")
    assert json.loads(path.read_text())["who"] == "second"
