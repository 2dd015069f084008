"""Two machines with the name of one node: the first one stays the node until it is forgotten."""

from pathlib import Path

import pytest
from tests.faults.fleet import Fleet
from tests.faults.parts import Agent

NAME = "twice"


@pytest.fixture
def machines(fleet: Fleet, tmp_path: Path):
    """Two agents with this name and different machine ids; none of them runs."""
    agents = []
    for number in (1, 2):
        machine = tmp_path / f"machine-id-{number}"
        machine.write_text(f"{number:032x}\n")
        agent = {"listen": "127.0.0.1:0", "machine_id_file": str(machine)}
        described = fleet.agent(NAME, data_dir=str(tmp_path / f"data-{number}"), agent=agent)
        agents.append(Agent("agent", tmp_path / f"{number}.log", described.settings, described.env))
    yield agents
    for each in agents:
        if each.runs:
            each.kill()


def findings(fleet):
    view = fleet.api.get("nodes", NAME)
    return [finding["code"] for finding in view["findings"] if finding["check"] == "agent"]


def run_count(fleet):
    return len(fleet.runs(NAME))


def test_a_second_machine_is_refused_until_the_first_is_forgotten(fleet, machines, eventually):
    """Real agents at a real broker, which ends the connection of one when the other connects."""
    first, second = machines
    first.start()
    first.wait_until_ready()
    eventually(lambda: fleet.is_there(NAME) and run_count(fleet), "the first machine to be the node")
    assert findings(fleet) == []

    second.start()
    eventually(lambda: findings(fleet) == ["agent.name_in_use"], "the second machine to be noticed")
    second.kill()
    before = run_count(fleet)
    eventually(lambda: fleet.is_there(NAME) and run_count(fleet) > before, "the first machine to go on")
    assert {run["id"] for run in fleet.runs(NAME)} <= first.kept_runs()

    first.kill()
    eventually(lambda: fleet.api.get("nodes", NAME)["lost"], "the node to be lost")
    before = run_count(fleet)
    second.start()
    second.wait_until_ready()
    eventually(lambda: second.kept_runs() and not fleet.is_there(NAME), "the second machine to report in vain")
    assert run_count(fleet) == before
    fleet.api.post("nodes", NAME, "forget", body={"by": "ann", "reason": "replaced"})
    eventually(lambda: fleet.is_there(NAME) and run_count(fleet) > before, "the second machine to be the node")
    assert findings(fleet) == []
