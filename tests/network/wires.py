"""The networks of the tests: every node in a namespace of its own, with links that the tests limit and cut.

    coordinator with broker
            |
         leaf r1 ========= uplink ========= leaf r2
         |   |  |                           |  |   |
    node-1   2  3                           4  5   node-6

A leaf is a bridge, and every line a pair of virtual interfaces.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.network.namespaces import Namespace, new_namespace

COORDINATOR = "coordinator"
LEAVES = ("r1", "r2")

GBITPS = 1000
"""In the unit of all rates here."""

PACKET_BYTES = 9000
"""Jumbo frames take less work than the same bytes in smaller packets."""

HANDSHAKE_BYTES = 400
"""No packet of a handshake is larger."""

FILTER = """
flush ruleset
table bridge faults {{
    chain forward {{
        type filter hook forward priority 0
        {rules}
    }}
}}
"""


@dataclass(frozen=True)
class Cabling:
    """The names of the nodes at both leaves, and what a healthy link of a node carries, in Mbit/s."""

    at_r1: tuple[str, ...]
    at_r2: tuple[str, ...]
    link_mbitps: int

    @property
    def leaf_of(self) -> Mapping[str, str]:
        return dict.fromkeys(self.at_r1, "r1") | dict.fromkeys(self.at_r2, "r2")

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.at_r1, *self.at_r2)

    @property
    def addresses(self) -> Mapping[str, str]:
        return {COORDINATOR: "10.0.0.100"} | {node: f"10.0.0.{number}" for number, node in enumerate(self.nodes, 1)}


def _named(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"node-{number}" for number in range(first, last + 1))


SIX_HOSTS = Cabling(_named(1, 3), _named(4, 6), link_mbitps=200)
"""The links carry so little that two cores keep six of them busy, whatever else they have to do."""

TWELVE_HOSTS = Cabling(_named(1, 6), _named(7, 12), link_mbitps=100)


class Network:
    """The namespaces, by who is in them, and the wires between them. All rates are in Mbit/s."""

    def __init__(self, cabling: Cabling, fabric: Namespace, places: Mapping[str, Namespace]) -> None:
        self.cabling = cabling
        self.places = places
        self.cut_off: set[str] = set()
        self._fabric = fabric
        for leaf in LEAVES:
            fabric.ip(f"link add {leaf} type bridge", f"link set {leaf} up")
        for name in places:
            self._connect(name)
        fabric.ip("link add up-r1 type veth peer name up-r2")
        for leaf in LEAVES:
            self._plug(f"up-{leaf}", leaf)

    def limit(self, node: str, *, sends: int | None = None, receives: int | None = None) -> None:
        """What the link of a node carries from now on in each direction, by default as much as a healthy one."""
        self.places[node].limit("eth0", sends or self.cabling.link_mbitps)
        self._fabric.limit(node, receives or self.cabling.link_mbitps)

    def limit_uplink(self, mbitps: int) -> None:
        """What the nodes of one leaf can send to those of the other together from now on."""
        for leaf in LEAVES:
            self._fabric.limit(f"up-{leaf}", mbitps)

    def oversubscribe(self, ratio: float) -> None:
        """Lets the leaves share this part of what their nodes could send to each other."""
        self.limit_uplink(round(len(self.cabling.at_r1) * self.cabling.link_mbitps / ratio))

    def cut(self, node: str, *others: str) -> None:
        """Lets nothing pass any more between a node and the `others`."""
        self.cut_off.add(node)
        those = ", ".join(self.cabling.addresses[other] for other in others)
        self._filter(f"iifname {node} ip daddr {{ {those} }} drop", f"oifname {node} ip saddr {{ {those} }} drop")

    def hang(self, node: str) -> None:
        """Lets connections of a node with other nodes begin, and nothing large pass: as with a wrong MTU on the way."""
        others = ", ".join(self.cabling.addresses[other] for other in self.cabling.nodes if other != node)
        large = f"meta length > {HANDSHAKE_BYTES} drop"
        sends, receives = f"iifname {node} ip daddr {{ {others} }}", f"oifname {node} ip saddr {{ {others} }}"
        self._filter(f"{sends} {large}", f"{receives} {large}")

    def lose(self, node: str, percent: int, *, on_sending_only: bool = False) -> None:
        """Loses this percentage of the packets on the link of a node, in each direction."""
        some = f"numgen random mod 100 < {percent} drop"
        self._filter(f"iifname {node} {some}", *(() if on_sending_only else (f"oifname {node} {some}",)))

    def mend(self) -> None:
        """Makes everything healthy."""
        for node in self.cabling.nodes:
            self.limit(node)
        self.limit_uplink(self.cabling.link_mbitps * len(self.cabling.nodes))
        self._filter()

    def _connect(self, name: str) -> None:
        self._fabric.ip(f"link add {name} type veth peer name eth0 netns {self.places[name].pid}")
        self._plug(name, self.cabling.leaf_of.get(name, "r1"))
        self.places[name].ip(
            "link set lo up",
            f"link set eth0 mtu {PACKET_BYTES} gso_max_size {PACKET_BYTES} up",  # each packet for itself, as on a wire
            f"address add {self.cabling.addresses[name]}/24 dev eth0",
        )

    def _plug(self, interface: str, leaf: str) -> None:
        self._fabric.ip(f"link set {interface} mtu {PACKET_BYTES} master {leaf} up")

    def _filter(self, *rules: str) -> None:
        """What the leaves drop from now on, and nothing else."""
        self._fabric.run("nft", "-f", "-", text=FILTER.format(rules="\n        ".join(rules)))


@contextmanager
def new_network(cabling: Cabling) -> Iterator[Network]:
    with ExitStack() as stack:
        fabric = stack.enter_context(new_namespace("unshare", "--user", "--map-root-user"))
        places = {name: stack.enter_context(new_namespace(*fabric.enter)) for name in cabling.addresses}
        yield Network(cabling, fabric, places)
