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
    "efa400": Link(400, 1, 30, _EFA, ordered=False),
}
# Shares of the bandwidth on paper, from NVIDIA's maintainers in issues 290 and 212 of
# nccl-tests: 46 to 48 GB/s of an adapter's 50, and of NVLink's 450 GB/s 370, or 275 of
# all_reduce where switches sum.
_NETWORK, _NVLINK, _SWITCH = 0.94, 0.82, 0.61
_SUMMING = 450  # GB/s of NVLink, from which on cards have such switches
_HOST = 10.0  # GB/s of memory that ranks of a node share: our assumption


class Protocol(NamedTuple):
    """A way to send: its share of the bandwidth, and us, for trees and rings."""

    share: float
    base: tuple[float, float]
    nvlink: tuple[float, float]  # of a hop
    pci: tuple[float, float]
    network: tuple[float, float]


# The figures that NCCL chooses by: src/graph/tuning.cc of NCCL 2.12. It tells LL, LL128
# and Simple apart.
_PROTOCOLS = (
    Protocol(0.25, (4.4, 3.6), (0.52, 0.47), (1.0, 1.0), (5.0, 2.7)),
    Protocol(0.92, (4.4, 10.0), (1.2, 1.9), (1.9, 2.5), (8.5, 4.0)),
    Protocol(1.0, (0.0, 8.4), (28.0, 3.4), (28.0, 5.7), (50.0, 9.6)),
)


class Cluster(NamedTuple):
    """Nodes of as many GPUs.

    peer: GB/s between two GPUs of a node, by NVLink or not. gpus: of a node.
    """

    peer: float
    nvlink: bool
    gpus: int
    link: Link

    @staticmethod
    def of(card: str, gpus: int, link: str) -> Cluster:
        """By the card's and the link's names. ValueError where there is none."""
        if link not in LINKS:
            raise ValueError(f"{link!r} is not a link; give one of {', '.join(LINKS)}")
        name = _C._sim_cards(card)[0]
        facts = {each[0]: each[2:] for each in _C._sim_cards(None)}
        peer, nvlink = facts[name]
        return Cluster(peer, nvlink, gpus, LINKS[link])

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
        self.protocols = _PROTOCOLS if every else (_PROTOCOLS[0], _PROTOCOLS[-1])
        self.nvlink = of.nvlink and on_gpu
        self.inside = of.peer * (_NVLINK if of.nvlink else 1) if on_gpu else _HOST
        adapters = -(-self.each // of.link.gpus) if of.link.gpus else 1
        self.adapter = of.link.gbits / 8 * _NETWORK
        self.outside = self.adapter * adapters
        self.switch = of.peer * _SWITCH if of.peer >= _SUMMING and self.nvlink else 0.0

    def _hops(self, protocol: Protocol, tree: int, inside: float, out: float) -> float:
        kind = 0 if tree else 1
        near = (protocol.nvlink if self.nvlink else protocol.pci)[kind]
        far = protocol.network[kind] + self.extra
        return (
            protocol.base[kind] + inside * near + (out * far if self.nodes > 1 else 0)
        )

    def _best(
        self, kb: float, tree: int, rate: float, hops: float, out: float
    ) -> float:
        """The best protocol, at a rate of GB/s, over hops in and between nodes."""
        return min(
            self._hops(p, tree, hops, out) + kb / (rate * p.share)
            for p in self.protocols
        )

    def ring(self, kb: float, rounds: int = 1) -> float:
        """Each rank passes parts on to the next, around all ranks."""
        slow = min(self.inside, self.outside) if self.nodes > 1 else self.inside
        if self.each == 1:
            slow = self.outside
        part = rounds * (self.count - 1) / self.count
        hops, out = rounds * (self.count - 1), rounds * (self.nodes - 1)
        return self._best(kb, 0, slow / part, hops - out, out)

    def reduce(self, kb: float) -> float:
        """By rings, and by trees of nodes with chains, or summing switches, in them."""
        levels = 2 * log2(self.nodes)
        # A node has two children in one of two trees, and sends to both.
        network = self.outside / (1 if self.nodes == 2 else 2)
        found = [self.ring(kb, 2)]
        if self.each > 1:
            rate = min(self.inside / 2, network) if self.nodes > 1 else self.inside / 2
            found.append(self._best(kb, 1, rate, 2 * (self.each - 1), levels))
        if self.each > 1 and self.switch:  # by Simple alone
            rate = min(self.switch, network) if self.nodes > 1 else self.switch
            found.append(self._hops(_PROTOCOLS[-1], 1, 2, levels) + kb / rate)
        return min(found)

    def one(self, kb: float) -> float:
        """One rank sends parts to all others, or they to it."""
        near = kb * (self.each - 1) / self.count / self.inside
        far = kb * (self.count - self.each) / self.count / self.adapter
        return self._hops(_PROTOCOLS[0], 0, self.each > 1, 1) + near + far

    def message(self, kb: float) -> float:
        """One rank sends to another."""
        rate = self.adapter if self.nodes > 1 else self.inside
        return self._hops(_PROTOCOLS[0], 0, self.nodes == 1, 1) + kb / rate


_KINDS = {
    "all_reduce": "reduce",
    "barrier": "reduce",
    "gather": "one",
    "scatter": "one",
    "all_to_all": "one",
    "all_to_all_single": "one",
    "send": "message",
    "recv": "message",
}
