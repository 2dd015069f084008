"""Which listener must leave when there are too many: a client that opens many gives up its own.

Example: there may be four listeners. A client has three, another has one, and a third client comes. The first loses the
one that has listened longest. When it opens another one, it loses one of its own again.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

ListenerT = TypeVar("ListenerT")


def crowded_out(clients: Mapping[ListenerT, str], newcomer: str) -> ListenerT:
    """The listener that makes room for one more of the client `newcomer`. `clients` are those of all, oldest first."""
    numbers = Counter([*clients.values(), newcomer])
    most = max(numbers[client] for client in clients.values())
    return next(listener for listener, client in clients.items() if numbers[client] == most)
