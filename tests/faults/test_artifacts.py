"""Reports are in the bucket also when its server was away when they were made."""

import pytest
from tests.faults.fleet import TIGHT, Fleet
from tests.s3_server import ENVIRONMENT, SECRET, S3Server


@pytest.fixture
def s3(live, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server = S3Server()
    yield server
    server.kill()


@pytest.fixture
def fleet(tmp_path, new_mosquitto, mischief, s3):
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path, broker, mischief, nodes=("n1", TIGHT))
        fleet.coordinator.settings["plugins"] = {"artifacts": {"url": "s3://kept", "endpoint": s3.url}}
        fleet.set_right()
        yield fleet
        fleet.end()


def test_the_report_of_a_sweep_is_stored_when_the_bucket_is_back(fleet, s3, eventually):
    """Below the name of the fleet; no secret is in the log."""
    sweep = fleet.start_sweep("n1", TIGHT, check="simulated", strategy="single")
    fleet.ended_sweep(sweep)
    fleet.coordinator.logged("artifacts_not_stored")
    s3.start()
    eventually(lambda: len(s3.stored()) >= 2, "the report of the sweep")
    assert [key.rpartition("/")[2] for key in s3.stored()] == ["report.json", "report.txt"]
    assert sweep in s3.read(s3.stored()[0])
    assert SECRET not in str(fleet.coordinator.log())
