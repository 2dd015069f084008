"""The command line that starts a sweep again."""

import shlex

from tests.cases import cases

from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.views.sweeps.start_command import start_command

START = "muster sweep start --check collective"


@cases(
    "asked, options",
    [
        ({}, ""),
        ({"strategy": "pairs", "pairing": "rail", "passes": 2}, " --strategy pairs --pairing rail --passes 2"),
        ({"nodes": ("n1", "n2")}, " --nodes n1,n2"),
        ({"select": "rack=r1 leaf='a b'"}, " --nodes " + shlex.quote("rack=r1 leaf='a b'")),
        ({"max_parallel": "25%", "max_rounds": 3, "priority": -5}, " --max-parallel 25% --max-rounds 3 --priority -5"),
        ({"params": {"size": 8, "dtype": "bf16"}}, " --param size=8 --param dtype=bf16"),
        ({"params": {"text": "8", "list": [1, "$(x)"]}}, """ --param 'text="8"' --param 'list=[1, "$(x)"]'"""),
    ],
)
def test_it_has_what_differs_from_the_defaults(sweep, asked, options):
    """Quoted for a shell."""
    assert start_command(sweep(asked=SweepRequest(check="collective", **asked))) == START + options


def test_a_sweep_of_an_earlier_release_is_started_with_its_nodes(sweep):
    """Its request was not stored."""
    assert start_command(sweep(nodes=("n1", "n2"))) == f"{START} --nodes n1,n2 --strategy adaptive"


def test_a_request_that_names_a_whole_fleet_has_none(sweep):
    """Nobody pastes a hundred kilobytes."""
    asked = SweepRequest(check="collective", nodes=tuple(f"n{number}" for number in range(10_000)))
    assert start_command(sweep(asked=asked)) is None
