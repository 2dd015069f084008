"""Earlier sweeps as the tests write them."""

from muster_coordinator.localize.evidence.prior import PastSweep, SweepPrior
from muster_coordinator.model.sweep_records import Suspicion

DAY_S = 86_400.0


def before(days: float, *suspicions: Suspicion, cleared: str = "", convicted: str = "", passes: int = 1) -> PastSweep:
    """A sweep that ended so many days before day 100. Names stand with blanks between them."""
    return PastSweep(
        id=f"s{days:g}",
        ended_at=(100 - days) * DAY_S,
        passes=passes,
        cleared=frozenset(cleared.split()),
        convicted=frozenset(convicted.split()),
        suspicions={suspicion.node: suspicion for suspicion in suspicions},
    )


def bad(node: str, *partners: str, good: int = 1, good_alone: int = 0) -> Suspicion:
    """A node that was bad with each of these partners; alone, if that is empty."""
    return Suspicion(node=node, bad=tuple(tuple(each.split()) for each in partners), good=good, good_alone=good_alone)


def known(*sweeps: PastSweep, doubted: str = "") -> SweepPrior:
    """What is known on day 100, from these sweeps, the latest first."""
    return SweepPrior(sweeps, frozenset(doubted.split()), 100 * DAY_S)
