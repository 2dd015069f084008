"""Documents in a directory and in a real S3 server, which is killed and comes back."""

import asyncio

import pytest
from tests.s3_server import SECRET, running_s3

from muster import Artifact, Config, Effect
from muster.config import Settings
from muster_plugins.notifiers.artifacts.plugin import ArtifactStore

KEY = "sweeps/2026-11-27/a1b2c3d4/report.txt"
REPORT = (Artifact(key=KEY, content="3 nodes passed: \u2713\n"),)


@pytest.fixture
def s3(live, monkeypatch):
    with running_s3(monkeypatch) as server:
        yield server


def store(**section):
    """Stores the documents with these settings; gives the outcome."""
    config = Config(Settings.model_validate({"fleet": "blue", "plugins": {"artifacts": section}}))
    plugin = ArtifactStore()
    plugin.muster_configure(config)
    return lambda artifacts=REPORT: asyncio.run(plugin.muster_artifacts(config, artifacts))


def test_without_a_url_nothing_is_stored():
    """The plugin says so, and is not asked again."""
    assert store()() is None


def test_a_directory_gets_one_file_for_each_document(live, tmp_path):
    """Below the name of the fleet; the same key again replaces the file."""
    store_in_directory = store(url=f"file://{tmp_path}/kept")
    assert store_in_directory().effect is Effect.DONE
    assert store_in_directory((Artifact(key=KEY, content="later"),)).effect is Effect.DONE
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")] == [f"kept/blue/{KEY}"]
    assert (tmp_path / "kept" / "blue" / KEY).read_text() == "later"


def test_a_directory_that_cannot_be_written_is_named(live, tmp_path):
    """A file is in its place."""
    (tmp_path / "kept").write_text("")
    outcome = store(url=f"file://{tmp_path}/kept/below")()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail == f"file://{tmp_path}/kept/below/blue/{KEY}: Not a directory (os error 20)"


def test_a_bucket_gets_the_documents(s3):
    """Below the prefix and the name of the fleet, as they are."""
    assert store(url="s3://kept/reports", endpoint=s3.url)().effect is Effect.DONE
    assert s3.read(f"reports/blue/{KEY}") == REPORT[0].content


def test_a_server_that_was_away_is_used_again(s3):
    """Until then each try fails within its deadline and says why, without a secret."""
    store_in_bucket = store(url="s3://kept", endpoint=s3.url)
    assert store_in_bucket().effect is Effect.DONE
    s3.kill()
    outcome = store_in_bucket()
    assert outcome.effect is Effect.FAILED
    assert outcome.detail.startswith(f"s3://kept/blue/{KEY}: ")
    assert SECRET not in outcome.detail
    assert "\n" not in outcome.detail
    s3.start()
    assert store_in_bucket().effect is Effect.DONE
    assert s3.read(f"blue/{KEY}") == REPORT[0].content


def test_a_bucket_that_is_not_there_is_an_error(s3):
    """It names the document, and not the secret."""
    outcome = store(url="s3://other", endpoint=s3.url)()
    assert outcome.effect is Effect.FAILED
    assert KEY in outcome.detail
    assert SECRET not in outcome.detail


def test_a_secret_in_an_error_is_hidden(live, tmp_path, monkeypatch):
    """Whatever library has put it there."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "Not a directory")
    (tmp_path / "kept").write_text("")
    outcome = store(url=f"file://{tmp_path}/kept/below")()
    assert outcome.detail.endswith(": *** (os error 20)")
