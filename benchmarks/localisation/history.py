"""What several sweeps of one fleet find, one a day: with what earlier sweeps know, and without.

Method: the adaptive strategy sweeps the same simulated network again and again. What lasts (faults, nodes that differ,
busy nodes) is the same in each sweep; noise, stragglers and what a fault that comes and goes does are drawn anew. With
history, each sweep gets the suspicions of those before. A fault counts as found from the first sweep on that names the
part, or its node. Nothing is repaired, so a convicted node goes on to be swept.

Figures: share of the faults that each sweep or one before it has found; share of sweeps that name something healthy,
with its interval; runs for each node and sweep.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

from benchmarks.figures import Figure, arguments, publish
from benchmarks.localisation.network_cases import INTERMITTENT
from benchmarks.localisation.network_summary import Share
from benchmarks.localisation.scenarios import Drawing, scenario_of
from benchmarks.localisation.scoring import play
from benchmarks.localisation.truth import Named

from muster.table import table
from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.prior import MOST_SWEEPS, PastSweep, SweepPrior
from muster_coordinator.localize.strategies.adaptive import Adaptive

DAY_S = 86_400.0

FAULTY = tuple(f"calm: {fault}" for fault in INTERMITTENT)
HEALTHY = tuple(f"{condition}: healthy" for condition in ("calm", "stragglers", "heavy tail", "ECMP", "unequal nodes"))

AFTER = (1, 3, 5, 10, 20)
"""Numbers of sweeps after which the table says what was found."""

HEADER = (
    "nodes",
    "case",
    "history",
    "fleets",
    *(f"after {sweeps}" for sweeps in AFTER),
    "false",
    "at 95 %",
    "runs/node",
)


class Series(NamedTuple):
    """The sweeps of one fleet: faults found after each, if it names something healthy, and its runs for each node."""

    faults: int
    found: tuple[int, ...]
    false: tuple[bool, ...]
    runs: tuple[float, ...]


class Chain(NamedTuple):
    """What is played: this number of sweeps of one case, with or without history."""

    case: str
    nodes: int
    with_history: bool
    sweeps: int
    seed: int


def played(chain: Chain, noise: float) -> Series:
    """Sweeps one fleet again and again."""
    drawn = f"{chain.case} {chain.nodes} {chain.seed}"
    scenario = scenario_of(Drawing(chain.case, chain.nodes, drawn, "adaptive", noise))
    past: list[PastSweep] = []
    known: set[Named] = set()
    found, false, runs = [], [], []
    for day in range(chain.sweeps):
        prior = SweepPrior(tuple(past) if chain.with_history else (), now=day * DAY_S)
        strategy = Adaptive(scenario.sites, seed=f"{drawn} day {day}", prior=prior)
        sweep = play(strategy, scenario.fabric)
        diagnosis = strategy.diagnose(sweep.runs)
        named = {Named(culprit.part, culprit.of, culprit.rails) for culprit in diagnosis.culprits}
        known |= named
        found.append(scenario.truth.located(frozenset(known)))
        false.append(any(map(scenario.truth.is_healthy, named)))
        runs.append(sum(len(run.members) for run in sweep.runs) / chain.nodes)
        past = [_past(diagnosis, str(day), day * DAY_S), *past][:MOST_SWEEPS]
    return Series(len(scenario.truth.faults), tuple(found), tuple(false), tuple(runs))


def _past(diagnosis: Diagnosis, name: str, ended_at: float) -> PastSweep:
    return PastSweep(
        id=name,
        ended_at=ended_at,
        passes=1,
        cleared=diagnosis.cleared - diagnosis.convicted,
        convicted=diagnosis.convicted,
        suspicions={suspicion.node: suspicion for suspicion in diagnosis.recurring.suspicions},
    )


def _row(chain: Chain, series: Sequence[Series]) -> tuple[str, ...]:
    faults = sum(one.faults for one in series)
    shown = [
        str(Share(sum(one.found[sweeps - 1] for one in series), faults)) if sweeps <= chain.sweeps else ""
        for sweeps in AFTER
    ]
    false = _false(series)
    runs = sum(map(sum, (one.runs for one in series))) / false.tries
    which = str(chain.nodes), chain.case, "yes" if chain.with_history else "no", str(len(series))
    return (*which, *shown, str(false), false.interval, f"{runs:.3g}")


def _figures(chain: Chain, series: Sequence[Series]) -> Iterator[Figure]:
    what = f"{chain.case}, {chain.nodes} nodes, history {'used' if chain.with_history else 'not used'}"
    yield Figure(what=f"sweeps that name something healthy: {what}", unit="", value=_false(series).value)
    if faults := sum(one.faults for one in series):
        value = sum(one.found[-1] for one in series) / faults
        yield Figure(what=f"found after {chain.sweeps} sweeps: {what}", unit="", value=value)


def _false(series: Sequence[Series]) -> Share:
    return Share(sum(map(sum, (one.false for one in series))), sum(len(one.false) for one in series))


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[64], metavar="N", help="sizes of the fleet")
    parser.add_argument("--cases", nargs="+", default=[*FAULTY, *HEALTHY], metavar="CASE", help="'CONDITION: FAULT'")
    parser.add_argument("--seeds", type=int, default=10, help="fleets of each case and size")
    parser.add_argument("--sweeps", type=int, default=20, help="of each fleet, one a day")
    parser.add_argument("--noise", type=float, default=0.02, help="of a repetition, relative")
    parser.add_argument("--jobs", type=int, default=1, help="processes that simulate")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    figures: list[Figure] = []
    with ProcessPoolExecutor(options.jobs) as processes:
        for nodes, case, with_history in product(options.nodes, options.cases, (False, True)):
            chains = [Chain(case, nodes, with_history, options.sweeps, seed) for seed in range(options.seeds)]
            series = [*processes.map(partial(played, noise=options.noise), chains)]
            rows.append(_row(chains[0], series))
            figures += _figures(chains[0], series)
    print(table(HEADER, rows))
    publish(options, figures)


if __name__ == "__main__":
    main()
