"""The cost of collectives of a cluster of GPUs: a latency, and bytes over bandwidth.

The figures, their sources and how good they are: docs/scale.md.
"""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from pydevtensor import _C

__all__: list[str] = []


class Link(NamedTuple):
    """A network between nodes."""

    gbits: float  # Gbit/s of an adapter, each way
    gpus: int  # that share one; 0: all of a node
    hop: float  # us of a message beyond those of InfiniBand
    source: str
    ordered: bool = True  # whether bytes of a message arrive in order, as LL128 needs


_DGX = "NVIDIA DGX {} user guide: {}"
_TCP = "IEEE 802.3; the time of a message is our assumption for TCP"
_EFA = "AWS's EC2 P5 instances: 3,200 Gbit/s of eight GPUs; a message's time is fitted"
LINKS = {
    "eth25": Link(25, 0, 15, _TCP),
    "eth100": Link(100, 0, 15, _TCP),
    "ib100": Link(100, 2, 0, _DGX.format("1", "four EDR adapters for eight GPUs")),
    "ib200": Link(200, 1, 0, _DGX.format("A100", "eight HDR adapters")),
    "ib400": Link(400, 1, 0, _DGX.format("H100", "eight NDR adapters")),
    "efa400": Link(400, 1, 28, _EFA, ordered=False),
}
# Shares of the bandwidth on paper, from NVIDIA's maintainers in issues 290 and 212 of
# nccl-tests: 46 to 48 GB/s of an adapter's 50, and of NVLink's 450 GB/s 370, or 275 of
# all_reduce where switches sum.
_NETWORK, _NVLINK, _SWITCH = 0.94, 0.82, 0.61
_SUMMING = 450  # GB/s of NVLink, from which on cards have such switches
_HOST = 10.0  # GB/s of memory that ranks of a node share: our assumption


class Protocol(NamedTuple):
    """A way to send. Pairs are for trees, and for rings."""

    base: tuple[float, float]  # us of a call
    nvlink: tuple[float, float]  # us of a hop
    pci: tuple[float, float]
    network: tuple[float, float]
    share: tuple[float, float]  # of the bandwidth
    tree: tuple[float, ...]  # of it again, for 64 bytes, 128, ...; then 1
    least: float  # us of a hop in a node, in a ring of several nodes


# The figures that NCCL chooses by: src/graph/tuning.cc of NCCL 2.28. It tells LL, LL128
# and Simple apart.
_LL = Protocol(
    (6.8, 6.6),
    (0.6, 0.6),
    (1.0, 1.0),
    (5.0, 2.7),
    (0.92 / 3.8, 0.5),
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6)
    + (0.7, 0.8, 0.9),
    1,
)
_LL128 = Protocol(
    (14.0, 14.0),
    (1.25, 1.9),
    (1.9, 2.5),
    (8.5, 4.0),
    (0.86, 0.92),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6)
    + (0.8, 0.9, 0.9, 0.9, 0.9),
    1,
)
_SIMPLE = Protocol(
    (8.4, 8.4),
    (4.0, 3.4),
    (4.0, 5.7),
    (14.0, 14.0),
    (0.92, 1.0),
    (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6)
    + (0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
    3,
)
_PLATEAU = 1.4  # multiplies the hops' time in all_reduce by Simple, in rings of nodes
_SWITCHES = (
    25.0,
    20.9,
)  # us, where switches sum: in nodes, and for each hop between them
# GB/s that LL reaches at most, of one node, of two, and of more, by the first number of
# the cards' compute capability.
_LL_MOST = {
    7: (39, 39, 20.4),
    8: (87.7, 22.5, 19),
    9: (141, 45, 35),
    10: (282, 90, 70),
}


class Cluster(NamedTuple):
    """Nodes of as many GPUs.

    peer: GB/s between two GPUs of a node, by NVLink or not. kind: the first number of
    their compute capability. gpus: of a node.
    """

    peer: float
    nvlink: bool
    kind: int
    gpus: int
    link: Link

    @staticmethod
    def of(card: str, gpus: int, link: str) -> Cluster:
        """By the card's and the link's names. ValueError where there is none."""
        if link not in LINKS:
            raise ValueError(f"{link!r} is not a link; give one of {', '.join(LINKS)}")
        name = _C._sim_cards(card)[0]
        facts = {each[0]: each[2:] for each in _C._sim_cards(None)}
        peer, nvlink, kind = facts[name]
        return Cluster(peer, nvlink, kind, gpus, LINKS[link])

    def time(self, op: str, size: int, ranks: list[int], on_gpu: bool = True) -> int:
        """Nanoseconds of a call of some ranks.

        op: its name. size: the bytes of its largest operand over all parts.
        """
        count = len(ranks)
        if count < 2:
            return 0
        nodes = len({rank // self.gpus for rank in ranks})
        found = _Costs(self, count, nodes, on_gpu)
        us = getattr(found, _KINDS.get(op, "ring"))(size / 1e3)
        return round(1e3 * us)


class _Costs:
    """Microseconds of calls of KB, by the best of the ways that NCCL has."""

    def __init__(self, of: Cluster, count: int, nodes: int, on_gpu: bool) -> None:
        self.count, self.nodes = count, nodes
        self.each = -(-count // nodes)  # ranks of a node
        self.on_gpu, self.extra = on_gpu, of.link.hop
        every = nodes == 1 or of.link.ordered
        self.protocols = (_LL, _LL128, _SIMPLE) if every else (_LL, _SIMPLE)
        self.most = _LL_MOST[of.kind][min(nodes, 3) - 1]
        self.nvlink = of.nvlink and on_gpu
        self.inside = of.peer * (_NVLINK if of.nvlink else 1) if on_gpu else _HOST
        adapters = -(-self.each // of.link.gpus) if of.link.gpus else 1
        self.adapter = of.link.gbits / 8 * _NETWORK
        self.outside = self.adapter * adapters
        self.switch = of.peer * _SWITCH if of.peer >= _SUMMING and self.nvlink else 0.0

    def _far(self, protocol: Protocol, kind: int) -> float:
        """A hop between nodes. Simple waits for the data once more, to flush them."""
        # The hops of single GPUs of nodes are not hidden by those inside.
        hop = protocol.network[0 if self.each == 1 else kind]
        return hop + self.extra * (2 if protocol is _SIMPLE else 1)

    def _hops(self, protocol: Protocol, kind: int, inside: float, out: float) -> float:
        near = (protocol.nvlink if self.nvlink else protocol.pci)[kind]
        if self.nodes > 1 and kind:
            near = max(near, protocol.least)
        far = out * self._far(protocol, kind) if self.nodes > 1 else 0
        return protocol.base[kind] + inside * near + far

    def _rate(self, protocol: Protocol, kind: int, whole: float) -> float:
        """The bandwidth of a protocol, where Simple's in rings is `whole`."""
        rate = whole * protocol.share[kind]
        return min(rate, self.most) if protocol is _LL else rate

    def ring(self, kb: float, part: float = 0, rounds: int = 1) -> float:
        """Each rank passes parts on to the next, around all ranks; part: of the bytes,
        that pass each rank."""
        slow = min(self.inside, self.outside) if self.nodes > 1 else self.inside
        if self.each == 1:
            slow = self.outside
        sent = kb * (part or rounds * (self.count - 1) / self.count)
        hops, out = rounds * (self.count - 1), rounds * (self.nodes - 1)
        found = []
        for protocol in self.protocols:
            us = self._hops(protocol, 1, hops - out, out)
            if protocol is _SIMPLE and rounds > 1 and self.nodes > 1:
                us *= _PLATEAU
            found.append(us + sent / self._rate(protocol, 1, slow))
        return min(found)

    def chain(self, kb: float) -> float:
        """All bytes pass all ranks."""
        return self.ring(kb, 1)

    def reduce(self, kb: float) -> float:
        """By rings, and by trees of nodes with chains, or summing switches, in them."""
        levels = 2 * int(log2(self.nodes))
        # A node has two children in one of two trees, and sends to both.
        network = self.outside / (1 if self.nodes == 2 else 2)
        power = max(int(log2(max(kb * 1e3, 64) / 64)), 0)

        def corrected(protocol: Protocol) -> float:
            return protocol.tree[power] if power < len(protocol.tree) else 1

        found = [self.ring(kb, rounds=2)]
        rates = [self.inside / 2] if self.each > 1 else []
        rates += [network] if self.nodes > 1 else []
        for protocol in self.protocols:
            rate = self._rate(protocol, 0, 2 * min(rates)) / 2 * corrected(protocol)
            us = self._hops(protocol, 0, 2 * (self.each - 1), levels)
            found.append(us + kb / rate)
        if self.each > 1 and self.switch:  # by Simple alone
            first, hop = _SWITCHES
            rate = self.switch
            if self.nodes > 1:
                first += levels * (hop + 2 * self.extra)
                rate = min(rate, network) * corrected(_SIMPLE)
            found.append(first + kb / rate)
        return min(found)

    def one(self, kb: float) -> float:
        """One rank sends parts to all others, or they to it."""
        near = kb * (self.each - 1) / self.count / self.inside
        far = kb * (self.count - self.each) / self.count / self.adapter
        return self._hops(_LL, 1, self.each > 1, 1) + near + far

    def message(self, kb: float) -> float:
        """One rank sends to another."""
        rate = self.adapter if self.nodes > 1 else self.inside
        return self._hops(_LL, 1, self.nodes == 1, 1) + kb / rate


_KINDS = {
    "all_reduce": "reduce",
    "barrier": "reduce",
    "broadcast": "chain",
    "reduce": "chain",
    "gather": "one",
    "scatter": "one",
    "all_to_all": "one",
    "all_to_all_single": "one",
    "send": "message",
    "recv": "message",
}
