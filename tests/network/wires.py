"""The network of the tests: every node in a namespace of its own, with links that the tests limit and cut.

    coordinator with broker
            |
         leaf r1 ========= uplink ========= leaf r2
         |   |  |                           |  |   |
    node-1   2  3                           4  5   node-6

A leaf is a bridge, and every line a pair of virtual interfaces.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from tests.network.namespaces import Namespace, new_namespace

LEAVES = {"r1": ("node-1", "node-2", "node-3"), "r2": ("node-4", "node-5", "node-6")}
LEAF_OF = {node: leaf for leaf, nodes in LEAVES.items() for node in nodes}
NODES = tuple(LEAF_OF)
COORDINATOR = "coordinator"
ADDRESSES = {COORDINATOR: "10.0.0.100"} | {node: f"10.0.0.{number}" for number, node in enumerate(NODES, 1)}

LINK_MBITPS = 200
"""What a healthy link carries: so little that two cores keep six of them busy, whatever else they have to do."""

PACKET_BYTES = 9000
"""Jumbo frames take less work than the same bytes in smaller packets."""

FILTER = """
flush ruleset
table bridge faults {{
    chain forward {{
        type filter hook forward priority 0
        {rules}
    }}
}}
"""


class Network:
    """The namespaces, by who is in them, and the wires between them. All rates are in Mbit/s."""

    def __init__(self, fabric: Namespace, places: Mapping[str, Namespace]) -> None:
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

    def limit(self, node: str, *, sends: int = LINK_MBITPS, receives: int = LINK_MBITPS) -> None:
        """What the link of a node carries from now on in each direction."""
        self.places[node].limit("eth0", sends)
        self._fabric.limit(node, receives)

    def limit_uplink(self, mbitps: int) -> None:
        """What the nodes of one leaf can send to those of the other together from now on."""
        for leaf in LEAVES:
            self._fabric.limit(f"up-{leaf}", mbitps)

    def cut(self, node: str, *others: str) -> None:
        """Lets nothing pass any more between a node and the `others`."""
        self.cut_off.add(node)
        those = ", ".join(ADDRESSES[other] for other in others)
        self._filter(f"iifname {node} ip daddr {{ {those} }} drop", f"oifname {node} ip saddr {{ {those} }} drop")

    def lose(self, node: str, percent: int) -> None:
        """Loses this percentage of the packets on the link of a node, in each direction."""
        some = f"numgen random mod 100 < {percent} drop"
        self._filter(f"iifname {node} {some}", f"oifname {node} {some}")

    def mend(self) -> None:
        """Makes everything healthy."""
        for node in NODES:
            self.limit(node)
        self.limit_uplink(LINK_MBITPS * len(NODES))
        self._filter()

    def _connect(self, name: str) -> None:
        self._fabric.ip(f"link add {name} type veth peer name eth0 netns {self.places[name].pid}")
        self._plug(name, LEAF_OF.get(name, "r1"))
        self.places[name].ip(
            "link set lo up",
            f"link set eth0 mtu {PACKET_BYTES} gso_max_size {PACKET_BYTES} up",  # each packet for itself, as on a wire
            f"address add {ADDRESSES[name]}/24 dev eth0",
        )

    def _plug(self, interface: str, leaf: str) -> None:
        self._fabric.ip(f"link set {interface} mtu {PACKET_BYTES} master {leaf} up")

    def _filter(self, *rules: str) -> None:
        """What the leaves drop from now on, and nothing else."""
        self._fabric.run("nft", "-f", "-", text=FILTER.format(rules="\n        ".join(rules)))


@contextmanager
def new_network() -> Iterator[Network]:
    with ExitStack() as stack:
        fabric = stack.enter_context(new_namespace("unshare", "--user", "--map-root-user"))
        places = {name: stack.enter_context(new_namespace(*fabric.enter)) for name in ADDRESSES}
        yield Network(fabric, places)
