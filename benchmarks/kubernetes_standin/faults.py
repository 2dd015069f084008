"""What goes wrong to order: the next requests that an order is about are answered as it says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from benchmarks.kubernetes_standin import statuses
from benchmarks.kubernetes_standin.resources import NODES
from benchmarks.kubernetes_standin.statuses import Refused


class Fault(StrEnum):
    """What happens to a request.

    CONFLICT to GONE: it is refused with that HTTP status. GARBAGE: it has no effect, and the answer is no JSON.
    DROPPED_BEFORE and DROPPED_AFTER: the connection is closed before or after the request has had its effect. SLOW: it
    has its effect at once, and the answer takes its time; a request that is refused has none, and is answered at once.
    """

    CONFLICT = "409"
    TOO_MANY = "429"
    INTERNAL = "500"
    UNAVAILABLE = "503"
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    GONE = "410"
    GARBAGE = "garbage"
    DROPPED_BEFORE = "dropped before"
    DROPPED_AFTER = "dropped after"
    SLOW = "slow"


@dataclass
class Order:
    """A fault for the next `times` requests with this verb, if one is given, and a path that `path` stands for.

    `seconds` is what Retry-After says, rounded to whole ones, and how long a slow answer takes.
    """

    fault: Fault
    times: int = 1
    verb: str | None = None
    path: str = "*"
    seconds: float = 1.0


@dataclass
class Orders:
    """Every order that is still to be carried out, the oldest first."""

    open: list[Order] = field(default_factory=list)

    def next_for(self, verb: str, path: str) -> Order | None:
        """The order that a request falls under, which is then carried out once more."""
        for order in self.open:
            if order.verb in {None, verb} and fnmatchcase(path, order.path):
                order.times -= 1
                if order.times <= 0:
                    self.open.remove(order)
                return order
        return None


def refusal(order: Order, name: str) -> Refused | None:
    """What the order refuses a request with that is about the object `name`, None when it does something else."""
    make = _REFUSALS.get(order.fault)
    return make(name, max(1, round(order.seconds))) if make else None


_REFUSALS: dict[Fault, Callable[[str, int], Refused]] = {
    Fault.CONFLICT: lambda name, _: statuses.conflict(NODES, name),
    Fault.TOO_MANY: lambda _, seconds: statuses.too_many_requests(seconds),
    Fault.INTERNAL: lambda *_: statuses.internal_error(),
    Fault.UNAVAILABLE: lambda _, seconds: statuses.unavailable(seconds),
    Fault.UNAUTHORIZED: lambda *_: statuses.unauthorized(),
    Fault.FORBIDDEN: lambda name, _: statuses.forbidden(NODES, name, "a policy of the cluster denies it"),
    Fault.GONE: lambda *_: statuses.too_old("The resourceVersion for the provided watch is too old."),
}
