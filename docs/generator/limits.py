"""The page that says what a sweep can and cannot find, from the figures that `benchmarks.localisation.limits` wrote."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generator.markdown import NOTE, page, table

FIGURES = Path(__file__).parents[1] / "reference" / "limits.json"

UNKNOWABLE = (
    (
        "All nodes are slow alike",
        "PASS: a run is slow only in comparison with others",
        "Set a [reference](../how-to/references.md) for what the hardware should reach",
    ),
    (
        "A quarter of the fleet or more is slow alike",
        "Inconclusive; it names what to look for",
        "Look what these nodes have in common: GPU model, power limit, driver",
    ),
    (
        "Two nodes, and their run is slow",
        "Nothing can be compared, and either node may be the cause",
        "Sweep them together with others, or set a reference",
    ),
    (
        "The only path between two leaves is slow",
        "Nothing says what another path would carry; a run inside a leaf shows that links are slower than NICs",
        "Set a reference, or compare with the cabling plan",
    ),
    (
        "Leaves are unknown",
        "A leaf or path between leaves cannot be named; nodes that fail alike stay inconclusive",
        "Declare the [topology](../how-to/topology.md)",
    ),
    (
        "A path that no group has crossed",
        "Nothing. One pass crosses nearly all paths of up to 1,024 nodes at leaves of 32, and up to eight that are "
        "left cost one pair each",
        "Use more passes",
    ),
    (
        "A path between leaves with different hardware, if there are too many to cross with a quarter of the nodes",
        "A note with the number of paths that no group has crossed",
        "Sweep again, which crosses others",
    ),
    (
        "A path that was bad in each of its runs, while too few nodes or rounds were left to convict it",
        "UNKNOWN, and the notes name the path",
        "Sweep again with more passes, or look at the switches at its ends",
    ),
    (
        "All paths between leaves with different hardware are slow",
        "PASS: nothing says what groups of both kinds should reach",
        "Set a [reference](../how-to/references.md)",
    ),
    (
        "One to three nodes are slower and have other hardware",
        "Inconclusive: too few to compare them with each other",
        "Sweep four of them together, or set a reference",
    ),
    (
        "A fault that did not show during the sweep",
        "PASS",
        "Sweep on a [schedule](../how-to/scheduled-sweeps.md): history adds up",
    ),
)
"""Cases that no sweep can tell apart: what it says, and what to do."""

Figures = dict[str, Any]


def limits() -> str:
    """What was measured, and what no method could know."""
    figures: Figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    return page(
        [
            NOTE,
            "# What a sweep can and cannot find",
            f"Everything on this page is a simulation. It was measured on {figures['at']} with the strategy `adaptive` "
            "on a [network of flows](../explanation/benchmarks.md#on-a-network-of-flows) that knows nothing of the "
            "rules. To measure it again, run `python -m benchmarks.localisation.limits` in a clone of the repository. "
            "It takes four to ten minutes on two cores and writes the figures, the picture and this page.",
            "![Smallest loss found, share found by size, and faults that come and go](limits.svg)",
            *_of_losses(figures),
            *_of_stated(figures),
            *_of_days(figures),
            *_of_false(figures),
            "## What no method could know",
            table(UNKNOWABLE, ("Case", "What the sweep says", "What to do")),
        ]
    )


def _of_losses(figures: Figures) -> Iterator[str]:
    yield "## The smallest loss that is found"
    yield (
        "One node delivers less than the others by the loss. The table has the smallest loss from which on 95 % of "
        f"such nodes are named, of those that were tried: {_losses(figures)}. There were {figures['seeds']} fleets for "
        "each cell and loss."
    )
    yield table(_by_noise(figures), ("64 nodes, noise", *_passes_header(figures)))
    yield table(_by_size(figures), ("nodes, noise 2 %", "1 pass", "4 passes", "loss 30 %, 1 pass: named", "PASS"))
    yield (
        "A sweep never calls a node slow that falls short by less than 15 %, and needs more where healthy runs differ "
        "more. Further passes find smaller losses. Each costs one run of every node."
    )


def _of_stated(figures: Figures) -> Iterator[str]:
    yield "## Whether a sweep knows what it could have found"
    yield (
        "Each sweep says how small a loss of a node or its link it would have found. In fleets of 4, 8, 16 and 64 "
        "nodes, one node or link fell short by 10 to 70 %. The table has the losses that are larger than the same "
        "fleet without the fault says, how many of them were named, and the sweeps that passed although the loss is "
        "larger than they say themselves. What was not named was inconclusive, or smaller than the sweep itself says."
    )
    rows = (
        tuple(map(str, (one["condition"], one["beyond"], one["named"], one["passed"]))) for one in figures["stated"]
    )
    yield table(rows, ("condition", "larger than stated", "named", "passed by mistake"))


def _of_days(figures: Figures) -> Iterator[str]:
    yield "## Faults that come and go"
    yield (
        f"One sweep of 64 nodes each day, {figures['fleets']} fleets. The columns have the share of the faults that "
        "was found up to that day. With history, a sweep goes on from the suspicions of earlier ones "
        "([how](../explanation/localisation.md#what-earlier-sweeps-know))."
    )
    days = (f"day {day}" for day in DAYS)
    yield table(_day_by_day(figures), ("fault", "history", *days, "sweeps that name something healthy", "runs/node"))


def _of_false(figures: Figures) -> Iterator[str]:
    sweeps = figures["healthy"]
    still = f"{100 * (1 - 0.025 ** (1 / sweeps)):.2g} %"
    yield "## How often something healthy is named"
    yield (
        f"{sweeps} healthy fleets of 64 nodes under each condition, one sweep each. The intervals are those of "
        f"Clopper and Pearson for 95 %: {sweeps} sweeps without a case still allow {still}."
    )
    yield table(_false(figures), ("condition", "sweeps that name something healthy", "interval", "runs/node"))


def _losses(figures: Figures) -> str:
    return ", ".join(f"{100 * loss:g}" for loss in figures["loss"]) + " %"


def _passes_header(figures: Figures) -> tuple[str, ...]:
    return tuple("1 pass" if passes == 1 else f"{passes} passes" for passes in _passes(figures))


def _passes(figures: Figures) -> list[int]:
    return sorted({one["passes"] for one in figures["losses"] if one["nodes"] == 64})


def _by_noise(figures: Figures) -> Iterator[tuple[str, ...]]:
    found = {(one["noise"], one["passes"]): one for one in figures["losses"] if one["nodes"] == 64}
    for noise in sorted({noise for noise, _ in found}):
        yield f"{100 * noise:g} %", *(_smallest(found[noise, passes]) for passes in _passes(figures))


def _by_size(figures: Figures) -> Iterator[tuple[str, ...]]:
    usual = {(one["nodes"], one["passes"]): one for one in figures["losses"] if one["noise"] == 0.02}
    at = figures["loss"].index(0.3)
    for nodes in sorted({nodes for nodes, _ in usual}):
        once = usual[nodes, 1]
        shares = (f"{once[what][at] / figures['seeds']:.0%}" for what in ("named", "passed"))
        yield str(nodes), _smallest(once), _smallest(usual[nodes, 4]), *shares


def _smallest(one: Figures) -> str:
    return "none" if one["smallest"] is None else f"{100 * one['smallest']:g} %"


DAYS = (1, 3, 5, 10, 20)


def _day_by_day(figures: Figures) -> Iterator[tuple[str, ...]]:
    for one in figures["intermittent"]:
        found = (f"{one['found'][day - 1] / figures['fleets']:.0%}" for day in DAYS)
        yield (
            one["case"],
            "yes" if one["history"] else "no",
            *found,
            f"{one['false']} ({_interval(one)})",
            f"{one['runs']:.2f}",
        )


def _false(figures: Figures) -> Iterator[tuple[str, ...]]:
    for one in figures["false"]:
        yield one["condition"], str(one["false"]), _interval(one), f"{one['runs']:.2f}"


def _interval(one: Figures) -> str:
    return f"{100 * one['low']:.2g} to {100 * one['high']:.2g} %"
